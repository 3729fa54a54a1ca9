/* What the test and the process under test share: a file that both map. control.py has the same layout. */

#ifndef CONTROL_H
#define CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTROL_VARIABLE "BARNABAS_SHIM_CONTROL"
#define RULES_MAX 16
#define PATH_BYTES 448

enum operation {
    OP_WRITE = 1,
    OP_SYNC = 2,
    OP_CREATE = 4,
    OP_OPEN_TO_WRITE = 8,
    OP_TRUNCATE = 16,
    OP_RENAME = 32,
    OP_UNLINK = 64,
    OP_READ = 128,
};

struct rule {
    int32_t is_active;
    uint32_t operations;
    int32_t error;      /* 0: the call is only delayed */
    int32_t unused;
    int64_t skip;       /* so many calls pass first */
    int64_t times;      /* so many calls fail; -1: all */
    int64_t room_bytes; /* writes still get so much; -1: nothing */
    int64_t delay_ns;
    int64_t hits;       /* how many calls failed, were cut short or delayed */
    char below[PATH_BYTES]; /* of files in this directory or below it */
};

struct control {
    int64_t clock_offset_ns;
    int64_t strobe_offset_ns; /* added in every second period */
    int64_t strobe_period_ns;
    int32_t has_rules;
    int32_t unused;
    char tracked[PATH_BYTES]; /* syncs of files below this directory are recorded; empty: none */
    char journal[PATH_BYTES];
    char graveyard[PATH_BYTES]; /* keeps files whose removal is not synced yet */
    struct rule rules[RULES_MAX];
};

/* NULL until the control file is mapped. */
extern struct control *control;

/* The next definition of a function that this library replaces. */
void *next_function(const char *name);

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (next == NULL) \
        next = (__typeof__(&name))next_function(#name)

/* disk.c */
int is_below(const char *directory, const char *path);
void path_of_fd(int fd, char *path);
void path_at(int directory_fd, const char *name, char *path);

/* journal.c: does nothing if nothing is tracked. */
void record_sync(int fd);
void record_truncation(int fd, off_t size);
void record_creation(int fd);
void keep_file(const char *path, char *grave);
void forget_file(const char *grave);
void record_rename(const char *source, const char *target, const char *grave);
void record_removal(const char *path, const char *grave);

#endif
