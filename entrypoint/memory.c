/* memory.c - see memory.h. */
#include "entrypoint/memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind a name in a file of lines "name: number kB"; 0 if there is none. */
static uint64_t kib_field(const char *path, const char *name)
{
    char line[256];
    unsigned long long kib = 0;
    size_t n = strlen(name);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            kib = strtoull(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return (uint64_t)kib * 1024;
}

ty_memory ty_memory_now(void)
{
    const char *path = "/proc/self/status";
    return (ty_memory){kib_field(path, "VmRSS"), kib_field(path, "RssAnon"), kib_field(path, "VmHWM")};
}

/* A limit file holds a number, or "max". */
static uint64_t limit_in(const char *path)
{
    char text[64] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return UINT64_MAX;
    char *got = fgets(text, sizeof text, f);
    fclose(f);
    char *end;
    unsigned long long n = got ? strtoull(text, &end, 10) : 0;
    return got && end != text && n > 0 ? n : UINT64_MAX;
}

/* Of a group and all that it lies in. */
static uint64_t limit_upward(const char *root, const char *mount, const char *group, const char *file)
{
    char path[PATH_MAX], at[PATH_MAX];
    uint64_t least = UINT64_MAX;
    snprintf(at, sizeof at, "%s", group);
    for (;;) {
        if (snprintf(path, sizeof path, "%s%s%s/%s", root, mount, strcmp(at, "/") == 0 ? "" : at, file) <
            (int)sizeof path) {
            uint64_t limit = limit_in(path);
            least = limit < least ? limit : least;
        }
        char *slash = strrchr(at, '/');
        if (!slash || !at[0])
            return least;
        *slash = 0;
    }
}

/* Lines of /proc/self/cgroup: "0::/group" (version 2), "9:memory:/group" (version 1). */
static uint64_t limit_of_groups(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    uint64_t least = UINT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        uint64_t limit = UINT64_MAX;
        if (!names[1])
            limit = limit_upward(root, "/sys/fs/cgroup", group, "memory.max");
        else if (strstr(names + 1, "memory"))
            limit = limit_upward(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
        least = limit < least ? limit : least;
    }
    if (f)
        fclose(f);
    return least;
}

uint64_t ty_memory_limit_at(const char *root, const char **why)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    uint64_t total = kib_field(path, "MemTotal"), available = kib_field(path, "MemAvailable");
    uint64_t group = limit_of_groups(root);
    bool limited = group < total || total == 0;
    *why = limited ? "the container's limit" : "available memory";
    return limited ? group : available;
}

uint64_t ty_memory_limit(const char **why)
{
    return ty_memory_limit_at("", why);
}
