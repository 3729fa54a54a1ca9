package judge;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs the scenarios of one family (second argument) against a broker (first), one line of JSON for each. */
public final class Main {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Scenarios of coordinators mostly wait. Basic ones run alone, since they change what others would see. */
    private static final int AT_ONCE = 6;

    private Main() { }

    public static void main(String[] arguments) throws Exception {
        Map<String, Scenario> scenarios = scenariosOf(arguments[1]);
        ExecutorService workers = Executors.newFixedThreadPool(arguments[1].equals("basics") ? 1 : AT_ONCE);
        try (Clients clients = new Clients(arguments[0])) {
            List<Future<?>> running = new ArrayList<>();
            scenarios.forEach((name, scenario) -> running.add(workers.submit(() -> report(name, scenario, clients))));
            for (Future<?> each : running) {
                each.get();
            }
        } finally {
            workers.shutdown();
        }
    }

    private static Map<String, Scenario> scenariosOf(String family) {
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        switch (family) {
            case "basics" -> {
                RecordScenarios.register(scenarios);
                OffsetScenarios.register(scenarios);
                TopicScenarios.register(scenarios);
                ConfigScenarios.register(scenarios);
            }
            case "groups" -> {
                GroupScenarios.register(scenarios);
                MembershipScenarios.register(scenarios);
                GroupAdminScenarios.register(scenarios);
            }
            case "transactions" -> {
                TransactionScenarios.register(scenarios);
                CopyScenarios.register(scenarios);
                TransactionAdminScenarios.register(scenarios);
            }
            default -> throw new IllegalArgumentException("no family of scenarios is called " + family);
        }
        return scenarios;
    }

    private static void report(String name, Scenario scenario, Clients clients) {
        try {
            String line = JSON.writeValueAsString(outcome(name, scenario, clients));
            System.out.println(line);
        } catch (JsonProcessingException failure) {
            throw new IllegalStateException(name, failure);
        }
    }

    private static Map<String, Object> outcome(String name, Scenario scenario, Clients clients) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("scenario", name);
        try {
            String topic = "java-" + name + "-" + UUID.randomUUID().toString().substring(0, 8);
            line.put("result", scenario.run(clients, topic));
        } catch (Exception failure) {
            line.put("failure", failure + " at " + List.of(failure.getStackTrace()).subList(0, 3));
        }
        return line;
    }
}
