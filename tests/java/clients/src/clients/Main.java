package clients;

import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Runs one kind of client (first argument) against a broker (second), with the topic named third. Prints a line
 * "name = value" for each thing it saw. Uses only what kafka-clients has had from 2.8 on.
 */
public final class Main {
    private Main() { }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        String topic = arguments[2];
        Map<String, Object> seen = new TreeMap<>();
        seen.put("version", AppInfoParser.getVersion());
        switch (arguments[0]) {
            case "producer":
                Producing.plain(settings, topic, seen);
                break;
            case "transactions":
                Producing.transactional(settings, topic, seen);
                break;
            case "consumer":
                Consuming.inGroup(settings, topic, seen);
                break;
            case "admin":
                Administering.all(settings, topic, seen);
                break;
            default:
                throw new IllegalArgumentException("no client of the kind " + Arrays.toString(arguments));
        }
        seen.forEach((name, value) -> System.out.println(name + " = " + value));
    }
}
