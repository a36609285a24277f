#include "soak.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

int soak_journal_open(const char *folder, const char *name)
{
    char path[SOAK_PATH];
    (void)snprintf(path, sizeof path, "%s/%s.journal", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return fd;
}

/* "<ms> <life> <event> <task> <attempt> <sequence> <crc> <detail>", with tabs between. */
void soak_journal_write(int fd, int life, const soak_note *note)
{
    char line[LINE_MAX_BYTES];
    int len =
        snprintf(line, sizeof line,
                 "%" PRId64 "\t%d\t%s\t%s\t%" PRIu32 "\t%" PRIu64 "\t%08" PRIx32 "\t%s\n",
                 soak_now_ms(), life, note->event, note->task == NULL ? "-" : note->task,
                 note->attempt, note->sequence, note->crc,
                 note->detail == NULL ? "-" : note->detail);
    if (len >= (int)sizeof line || write(fd, line, (size_t)len) != len) {
        soak_say("the journal can't be written");
        abort();
    }
}
