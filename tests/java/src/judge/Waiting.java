package judge;

import java.util.concurrent.Callable;

/** Waits for a condition, with a deadline that is long enough for a busy machine. */
final class Waiting {
    static final int SECONDS = 60;

    private Waiting() { }

    static void until(String what, Callable<Boolean> holds) throws Exception {
        long deadline = System.nanoTime() + SECONDS * 1_000_000_000L;
        while (!holds.call()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("timed out while waiting until " + what);
            }
            Thread.sleep(20);
        }
    }
}
