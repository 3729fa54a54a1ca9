package judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Clients of a recorded history (tests/jepsen). Each line of the input is a command: {"id": ..., "client": name,
 * "command": ..., ...}; each line of the output has its id and its result or its failure. A client does one command at
 * a time, different clients work at the same time. Ends without a word when the input ends.
 */
public final class HistoryClients {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final Map<String, HistoryWriter> writers = new ConcurrentHashMap<>();
    private final Map<String, HistoryReader> readers = new ConcurrentHashMap<>();

    private HistoryClients() { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        HistoryClients clients = new HistoryClients();
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = JSON.readTree(line);
            String client = command.get("client").asText();
            clients.threads.computeIfAbsent(client, name -> Executors.newSingleThreadExecutor())
                .execute(() -> clients.answer(client, command));
        }
        Runtime.getRuntime().halt(0);
    }

    private void answer(String client, JsonNode command) {
        Map<String, Object> line = new HashMap<>();
        line.put("id", command.get("id").asLong());
        try {
            line.put("result", run(client, command));
        } catch (Exception failure) {
            line.put("failure", failure.getClass().getSimpleName());
            line.put("text", failure.toString());
        }
        say(line);
        if (!writers.containsKey(client) && !readers.containsKey(client)) {
            threads.remove(client).shutdown();
        }
    }

    private static synchronized void say(Map<String, Object> line) {
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    private Object run(String client, JsonNode command) throws Exception {
        switch (command.get("command").asText()) {
            case "open writer" -> writers.put(client, new HistoryWriter(command.get("settings")));
            case "open reader" -> readers.put(client, new HistoryReader(command.get("settings")));
            case "send offsets" -> writers.get(client).sendOffsets(
                HistoryReader.offsets(command.get("offsets")),
                readers.get(command.get("reader").asText()).groupMetadata());
            case "close", "abandon" -> close(client, command.get("command").asText().equals("close"));
            default -> {
                HistoryWriter writer = writers.get(client);
                return writer != null ? writer.run(command) : readers.get(client).run(command);
            }
        }
        return null;
    }

    private void close(String client, boolean isClean) {
        HistoryWriter writer = writers.remove(client);
        HistoryReader reader = readers.remove(client);
        if (writer != null) {
            writer.close(isClean);
        }
        if (reader != null) {
            reader.close(isClean);
        }
    }
}
