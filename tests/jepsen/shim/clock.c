/* A wall clock that is wrong: CLOCK_REALTIME and what is made of it. Monotonic clocks are never touched. */

#define _GNU_SOURCE
#include "control.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000LL

struct control *control;

void *next_function(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void map_control(void) {
    const char *path = getenv(CONTROL_VARIABLE);
    if (path == NULL)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        abort();
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        abort();
    close(fd);
    control = mapped;
}

static int64_t offset_ns(void) {
    if (control == NULL)
        return 0;
    int64_t offset = control->clock_offset_ns, period = control->strobe_period_ns;
    if (period > 0) {
        NEXT(clock_gettime);
        struct timespec now;
        next(CLOCK_MONOTONIC, &now);
        if ((now.tv_sec * NS_PER_SECOND + now.tv_nsec) / period % 2 == 1)
            offset += control->strobe_offset_ns;
    }
    return offset;
}

int clock_gettime(clockid_t id, struct timespec *time) {
    NEXT(clock_gettime);
    int result = next(id, time);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI)) {
        int64_t now = time->tv_sec * NS_PER_SECOND + time->tv_nsec + offset_ns();
        time->tv_sec = now / NS_PER_SECOND;
        time->tv_nsec = now % NS_PER_SECOND;
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    NEXT(gettimeofday);
    struct timespec now;
    int result = next(time, zone);
    if (result == 0 && time != NULL && clock_gettime(CLOCK_REALTIME, &now) == 0) {
        time->tv_sec = now.tv_sec;
        time->tv_usec = now.tv_nsec / 1000;
    }
    return result;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL)
        *result = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *time, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}
