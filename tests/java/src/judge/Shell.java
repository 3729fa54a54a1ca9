package judge;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools one after the other in one JVM. Each line of the input is a JSON array, a main class and its
 * arguments; each line of the output says how that ended and what it printed.
 */
public final class Shell {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int RUNNING = -1;

    private Shell() { }

    /** Ends a tool that calls exit, without ending the process. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream results = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            List<String> command = JSON.readValue(line, new TypeReference<List<String>>() { });
            results.println(JSON.writeValueAsString(outcome(command)));
            results.flush();
        }
    }

    private static Map<String, Object> outcome(List<String> command) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        AtomicInteger status = new AtomicInteger(RUNNING);
        Exit.Procedure leave = (code, message) -> {
            status.compareAndSet(RUNNING, code);
            throw new Exited();
        };
        Exit.setExitProcedure(leave);
        Exit.setHaltProcedure(leave);
        run(command, status);
        status.compareAndSet(RUNNING, 0);
        return Map.of(
            "status", status.get(),
            "output", printed.toString(StandardCharsets.UTF_8),
            "errors", errors.toString(StandardCharsets.UTF_8));
    }

    private static void run(List<String> command, AtomicInteger status) throws Exception {
        Method main = Class.forName(command.get(0)).getMethod("main", String[].class);
        try {
            main.invoke(null, (Object) command.subList(1, command.size()).toArray(new String[0]));
        } catch (InvocationTargetException ended) {
            if (!(ended.getCause() instanceof Exited)) {
                status.compareAndSet(RUNNING, 1);
                ended.getCause().printStackTrace();
            }
        }
    }
}
