package judge;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/** Runs every scenario against the broker named by the first argument, one line of JSON for each. */
public final class Main {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Main() { }

    public static void main(String[] arguments) throws JsonProcessingException {
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        RecordScenarios.register(scenarios);
        OffsetScenarios.register(scenarios);
        TopicScenarios.register(scenarios);
        ConfigScenarios.register(scenarios);
        try (Clients clients = new Clients(arguments[0])) {
            for (Map.Entry<String, Scenario> each : scenarios.entrySet()) {
                System.out.println(JSON.writeValueAsString(outcome(each.getKey(), each.getValue(), clients)));
            }
        }
    }

    private static Map<String, Object> outcome(String name, Scenario scenario, Clients clients) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("scenario", name);
        try {
            String topic = "java-" + name + "-" + UUID.randomUUID().toString().substring(0, 8);
            line.put("result", scenario.run(clients, topic));
        } catch (Exception failure) {
            line.put("failure", failure.toString());
        }
        return line;
    }
}
