/* orphans.c - a walk over /proc. */
#define _GNU_SOURCE
#include "entrypoint/orphans.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct process {
    char state;
    pid_t parent, group;
} process;

/* proc(5): "pid (comm) state ppid pgrp ..."; comm may hold anything, so the last ')' counts. */
static bool read_process(const char *pid_text, process *out)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid_text);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %c %d %d", &out->state, &out->parent, &out->group) == 3;
}

int ty_orphans_signal(pid_t group, pid_t spared, int number)
{
    pid_t self = getpid();
    DIR *proc = opendir("/proc");
    if (!proc) { /* no /proc: as PID 1 there is still a way */
        if (group > 0 && group != spared)
            kill(-group, number);
        return self == 1 && spared == 0 ? kill(-1, number) == 0 : 0;
    }
    int signalled = 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        process p;
        if (!isdigit((unsigned char)entry->d_name[0]) || !read_process(entry->d_name, &p) || p.state == 'Z')
            continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        bool is_ours = pid != self && (self == 1 || p.parent == self);
        if (is_ours && (spared <= 0 || p.group != spared) && kill(pid, number) == 0)
            signalled++;
    }
    closedir(proc);
    if (group > 0 && group != spared && self != 1)
        kill(-group, number); /* members whose parents live */
    return signalled;
}
