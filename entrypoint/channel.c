/* channel.c - see channel.h. */
#include "entrypoint/channel.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the channel of a rank ---- */

/* The number at the end of a channel that is called like `base`; without one 0; -1: it is called otherwise. */
static int64_t channel_number(const char *base, const char *name)
{
    size_t n = strlen(base);
    if (strncmp(base, name, n) != 0)
        return -1;
    const char *p = name + n;
    if (*p == '\0')
        return 0;
    if (*p == '-' || *p == '_' || *p == '.')
        p++;
    if (*p == '\0' || strlen(p) > 9 || strspn(p, "0123456789") != strlen(p))
        return -1;
    return strtoll(p, NULL, 10);
}

static const ty_job_channel *channel_called(const ty_job *job, const char *name)
{
    for (int i = 0; i < job->n_channels; i++)
        if (strcmp(job->channels[i].name, name) == 0)
            return &job->channels[i];
    return NULL;
}

/* Channel `which` in the order of their numbers; those of one number in the order of their names. */
static const ty_job_channel *channel_at(const ty_job *job, const char *base, int which, int *n_alike)
{
    const ty_job_channel *found = NULL;
    *n_alike = 0;
    for (int i = 0; i < job->n_channels; i++) {
        int64_t number = channel_number(base, job->channels[i].name);
        int before = 0;
        if (number < 0 || job->channels[i].mode != TY_JOB_PIPE)
            continue;
        for (int k = 0; k < job->n_channels; k++) {
            int64_t other = channel_number(base, job->channels[k].name);
            if (other >= 0 && job->channels[k].mode == TY_JOB_PIPE && (other < number || (other == number && k < i)))
                before++;
        }
        if (before == which)
            found = &job->channels[i];
        ++*n_alike;
    }
    return found;
}

const ty_job_channel *ty_channel_of_rank(const ty_job *job, const char *name, const ty_place *place, int *n_alike)
{
    const ty_job_channel *named = channel_called(job, name);
    *n_alike = named ? 1 : 0;
    if (named && named->mode != TY_JOB_PIPE)
        return named;
    return channel_at(job, name, place->local, n_alike);
}

const char *ty_channel_names(const ty_job *job, char *out, size_t n)
{
    size_t len = 0;
    out[0] = 0;
    for (int i = 0; i < job->n_channels && len < n; i++)
        len += (size_t)snprintf(out + len, n - len, "%s%s", i ? ", " : "", job->channels[i].name);
    return out;
}

bool ty_channel_has_fifo(const char *path)
{
    const char *name = strrchr(path, '/');
    char folder[PATH_MAX];
    struct stat st;
    bool found = false;
    snprintf(folder, sizeof folder, "%.*s", name ? (int)(name - path) : 1, name ? path : ".");
    name = name ? name + 1 : path;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && !found && (e = readdir(dir)) != NULL;) {
        size_t n = strlen(name);
        const char *number = e->d_name + n + 1;
        found = strncmp(e->d_name, name, n) == 0 && e->d_name[n] == '_' && *number &&
                strspn(number, "0123456789") == strlen(number) && fstatat(dirfd(dir), e->d_name, &st, 0) == 0 &&
                S_ISFIFO(st.st_mode);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* ---- access ---- */

bool ty_access_is_records(const char *format)
{
    static const char *const names[] = {"tfrecord",  "recordio", "mxnet",   "libsvm",
                                        "jsonlines", "lines",    "parquet", "arrow"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(format, names[i]) == 0)
            return true;
    return false;
}

bool ty_access_streams(const ty_access_facts *f, const char **why)
{
    *why = "the recipe says so";
    if (f->wanted != TY_ACCESS_AUTO && f->mode != TY_JOB_PIPE)
        return f->wanted == TY_ACCESS_STREAM;
    *why = "Pipe mode has no other order";
    if (f->mode == TY_JOB_PIPE)
        return true;
    *why = "samples of this format are found by number";
    if (!f->is_records)
        return false;
    *why = "the schedule depends on the length of an epoch, which data.train.samples does not say";
    if (f->needs_length)
        return false;
    *why = "FastFile mode fetches what is read, so each byte is read once";
    if (f->mode == TY_JOB_FAST_FILE && !f->is_decoded)
        return true;
    bool is_large = f->bytes > f->memory_bytes / 2;
    if (f->is_decoded)
        *why = is_large ? "decoded, its columns take more than half of the memory"
                        : "decoded, its columns take less than half of the memory";
    else
        *why = is_large ? "files larger than half of the memory" : "files smaller than half of the memory";
    return is_large;
}

/* ---- parts ---- */

enum { PART_FILES = 4 }; /* so many for each part, of sizes that are alike, make parts nearly even */

/* Among whom the stream is shared, by the table of channel.h. */
static ty_stream_part part_among(const ty_stream_part_facts *f)
{
    const ty_place *p = &f->place;
    ty_stream_part out = {.n = 1};
    const char *whose = "this rank's channel has data of its own";
    if (f->own_data || f->one_reader) {
        if (!f->sharded)
            out.index = p->host, out.n = p->hosts;
        if (f->one_reader)
            whose = "one rank of each host reads";
    } else if (f->sharded) {
        out.index = p->local, out.n = p->locals;
        whose = "each host has files of its own";
    } else {
        out.index = p->rank, out.n = p->ranks;
        whose = "all ranks see the same data";
    }
    out.is_uneven = (f->own_data && p->locals > 1) || (f->sharded && p->hosts > 1) || (f->one_reader && p->locals > 1);
    snprintf(out.why, sizeof out.why, "%s", whose);
    return out;
}

ty_stream_part ty_stream_part_of(const ty_stream_part_facts *f)
{
    ty_stream_part out = part_among(f);
    size_t len = strlen(out.why);
    if (f->wanted == TY_PART_NONE) {
        out = (ty_stream_part){.n = 1, .is_uneven = f->place.ranks > 1};
        snprintf(out.why, sizeof out.why, "shard: none");
        return out;
    }
    if (out.n == 1)
        return out;
    out.by_file = f->n_files > 0 && (f->wanted == TY_PART_FILE ||
                                     (f->wanted == TY_PART_AUTO && f->even_files && f->n_files >= PART_FILES * out.n));
    out.is_uneven |= out.by_file;
    snprintf(out.why + len, sizeof out.why - len, out.by_file ? ", and %d files" : ", and take rows of each batch",
             f->n_files);
    return out;
}
