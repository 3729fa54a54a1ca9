package judge;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Clients of a cluster (first argument: its addresses) that work while brokers end and start again. Each line of the
 * input is a JSON array, a command and its arguments; each line of the output is its result or its failure.
 */
public final class Failover {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map<String, Job> jobs = new HashMap<>();
    private final Clients clients;
    private final ClusterAdmin admin;

    private Failover(Clients clients) {
        this.clients = clients;
        this.admin = new ClusterAdmin(clients.admin);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Clients clients = new Clients(arguments[0])) {
            Failover failover = new Failover(clients);
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                List<String> command = JSON.readValue(line, new TypeReference<List<String>>() { });
                System.out.println(JSON.writeValueAsString(failover.outcome(command)));
            }
        }
    }

    private Map<String, Object> outcome(List<String> command) {
        Map<String, Object> line = new HashMap<>();
        try {
            line.put("result", run(command.get(0), command.subList(1, command.size())));
        } catch (Exception failure) {
            line.put("failure", command + ": " + failure);
        }
        return line;
    }

    private Object run(String command, List<String> arguments) throws Exception {
        return switch (command) {
            case "start" -> start(arguments.get(0), arguments.get(1), arguments.subList(2, arguments.size()));
            case "done" -> done(jobs.get(arguments.get(0)));
            case "stop" -> jobs.remove(arguments.get(0)).stop();
            case "committed" -> TransactionScenarios.read(clients, "read_committed", arguments.get(0), 0);
            default -> admin.run(command, arguments);
        };
    }

    private Object start(String name, String kind, List<String> settings) {
        Job job = switch (kind) {
            case "write" -> new Writing(clients, settings.get(0));
            case "read" -> new Reading(clients, settings.get(0), Map.of(
                "group.id", settings.get(1), "group.protocol", settings.get(2), "client.rack", settings.get(3)));
            case "copy" -> new Copying(clients, settings.get(0), settings.get(1), settings.get(2), settings.get(3));
            case "describe" -> new Describing(clients, settings.get(0));
            default -> throw new IllegalArgumentException("no kind of job is called " + kind);
        };
        jobs.put(name, job);
        job.start();
        return null;
    }

    /** How much a running job has done; fails if the job has failed. */
    private static int done(Job job) {
        if (job.failure != null) {
            throw new IllegalStateException(job.failure);
        }
        return job.done.get();
    }
}
