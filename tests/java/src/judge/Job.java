package judge;

import java.util.concurrent.atomic.AtomicInteger;

/** Client work that goes on in a thread of its own until it is stopped or fails. */
abstract class Job {
    /** Records, transactions or calls that are done, as the kind of job counts. */
    final AtomicInteger done = new AtomicInteger();
    /** Null, or what the client failed with. */
    volatile String failure;
    private volatile boolean stopping;
    private final Thread thread = new Thread(this::guarded);

    /** Work until isStopping(). */
    abstract void run() throws Exception;

    /** What the job did; asked after its end. */
    abstract Object result();

    final void start() {
        thread.setDaemon(true);
        thread.start();
    }

    final boolean isStopping() {
        return stopping;
    }

    final Object stop() throws InterruptedException {
        stopping = true;
        thread.join(Waiting.SECONDS * 1000L);
        if (thread.isAlive()) {
            throw new IllegalStateException("the job does not end");
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        return result();
    }

    private void guarded() {
        try {
            run();
        } catch (Exception failed) {
            failure = failed + (failed.getCause() == null ? "" : ", because of " + failed.getCause());
        }
    }
}
