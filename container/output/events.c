/* events.c - TensorBoard event files.
 *
 * An Event is encoded inside out: each sub-message goes into a small buffer of its own, which is then added to its
 * parent behind its length. Field numbers are those of event.proto and summary.proto.
 */
#include "container/output/events.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "container/output/protobuf.h"
#include "container/output/tfrecord.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { MESSAGE_MAX_BYTES = 4096, PENDING_MAX_BYTES = 1 << 20, NAME_TRIES = 1000 };

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SESSION_LOG_STATUS = 1, SESSION_STATUS_START = 1 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, METADATA_DATA_CLASS = 4 };
enum { DATA_CLASS_SCALAR = 1, DATA_CLASS_TENSOR = 2 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_FLOAT_VAL = 5, TENSOR_STRING_VAL = 8 };
enum { DT_FLOAT = 1, DT_STRING = 7 };

struct tag {
    char *name;
    int64_t last_step;
    bool described; /* a record with the plugin's name has been kept for this file */
};

struct ty_events {
    ty_arena arena; /* path and tag names */
    char *path;
    int fd;
    off_t whole_bytes; /* the file's length up to its last whole record */
    ty_buf pending;    /* framed records that wait */
    int64_t oldest_ms; /* monotonic time of the first of them */
    struct tag *tags;
    size_t n_tags;
};

/* Adds a finished sub-message and empties it. A sub-message that did not fit fails its parent. */
static void put_message(ty_buf *out, int field, ty_buf *inner)
{
    out->failed |= inner->failed;
    ty_proto_put_bytes(out, field, inner->data, inner->len);
    ty_buf_fini(inner);
}

static ty_buf message_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, MESSAGE_MAX_BYTES);
    return b;
}

static int result(const ty_buf *out)
{
    return out->failed ? -1 : 0;
}

int ty_event_version(ty_buf *out, double wall_s)
{
    static const char version[] = "brain.Event:2";
    ty_proto_put_double(out, EVENT_WALL_TIME, wall_s);
    ty_proto_put_bytes(out, EVENT_FILE_VERSION, version, sizeof version - 1);
    return result(out);
}

int ty_event_session_start(ty_buf *out, double wall_s, int64_t step)
{
    ty_buf log = message_buf();
    ty_proto_put_int(&log, SESSION_LOG_STATUS, SESSION_STATUS_START);
    ty_proto_put_double(out, EVENT_WALL_TIME, wall_s);
    ty_proto_put_int(out, EVENT_STEP, step);
    put_message(out, EVENT_SESSION_LOG, &log);
    return result(out);
}

static void put_metadata(ty_buf *value, const char *plugin_name, int data_class)
{
    ty_buf metadata = message_buf(), plugin = message_buf();
    ty_proto_put_bytes(&plugin, PLUGIN_NAME, plugin_name, strlen(plugin_name));
    put_message(&metadata, METADATA_PLUGIN, &plugin);
    ty_proto_put_int(&metadata, METADATA_DATA_CLASS, data_class);
    put_message(value, VALUE_METADATA, &metadata);
}

static void put_scalar_tensor(ty_buf *value, float v)
{
    ty_buf tensor = message_buf();
    ty_proto_put_int(&tensor, TENSOR_DTYPE, DT_FLOAT);
    ty_proto_put_bytes(&tensor, TENSOR_SHAPE, NULL, 0);
    ty_proto_put_bytes(&tensor, TENSOR_FLOAT_VAL, &v, sizeof v);
    put_message(value, VALUE_TENSOR, &tensor);
}

/* As tf.summary.text has it: one string, of no dimensions. */
static void put_text_tensor(ty_buf *value, const char *text)
{
    ty_buf tensor = message_buf();
    ty_proto_put_int(&tensor, TENSOR_DTYPE, DT_STRING);
    ty_proto_put_bytes(&tensor, TENSOR_SHAPE, NULL, 0);
    ty_proto_put_bytes(&tensor, TENSOR_STRING_VAL, text, strlen(text));
    put_message(value, VALUE_TENSOR, &tensor);
}

static int put_event(ty_buf *out, double wall_s, int64_t step, ty_buf *value)
{
    ty_buf summary = message_buf();
    put_message(&summary, SUMMARY_VALUE, value);
    ty_proto_put_double(out, EVENT_WALL_TIME, wall_s);
    ty_proto_put_int(out, EVENT_STEP, step);
    put_message(out, EVENT_SUMMARY, &summary);
    return result(out);
}

int ty_event_scalar(ty_buf *out, double wall_s, int64_t step, const char *tag, float v, bool with_metadata)
{
    ty_buf value = message_buf();
    ty_proto_put_bytes(&value, VALUE_TAG, tag, strlen(tag));
    /* The vector of the format reference has the metadata (9) before the tensor (8): TensorBoard reads any order, and
     * a reader that streams knows the plugin before the data. */
    if (with_metadata)
        put_metadata(&value, "scalars", DATA_CLASS_SCALAR);
    put_scalar_tensor(&value, v);
    return put_event(out, wall_s, step, &value);
}

int ty_event_text(ty_buf *out, double wall_s, int64_t step, const char *tag, const char *text, bool with_metadata)
{
    ty_buf value = message_buf();
    ty_proto_put_bytes(&value, VALUE_TAG, tag, strlen(tag));
    if (with_metadata)
        put_metadata(&value, "text", DATA_CLASS_TENSOR);
    put_text_tensor(&value, text);
    return put_event(out, wall_s, step, &value);
}

/* The file. */

double ty_events_now(void)
{
    return (double)ty_clock_utc_ms() * 1e-3;
}

/* The counter keeps names apart when a container is restarted within a second: host and pid are then the same. */
static int events_create(ty_events *e, const char *dir, ty_error *err)
{
    static unsigned counter;
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++)
        if (*c == '/')
            *c = '_';
    for (int i = 0; i < NAME_TRIES; i++) {
        e->path = ty_arena_printf(&e->arena, "%s/events.out.tfevents.%010" PRId64 ".%s.%d.%u", dir,
                                  (int64_t)ty_events_now(), host, (int)getpid(), counter++);
        e->fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
        if (e->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return ty_error_errno(err, TY_E_NONE, errno, "cannot create the event file %s", e->path);
}

static int events_keep(ty_events *e, const ty_buf *message, ty_error *err)
{
    if (message->failed)
        return ty_error_set(err, TY_E_LIMIT, "event for %s is larger than %d bytes", e->path, MESSAGE_MAX_BYTES);
    if (PENDING_MAX_BYTES - e->pending.len < message->len + TY_TFRECORD_FRAME_BYTES && ty_events_flush(e, err) < 0)
        return -1;
    if (e->pending.len == 0)
        e->oldest_ms = ty_clock_ms();
    if (ty_tfrecord_add(&e->pending, message->data, message->len) < 0)
        return ty_error_set(err, TY_E_LIMIT, "out of memory for an event of %s", e->path);
    return 0;
}

/* A session start stands in every file, not only in those of resumed runs: TensorBoard's Python reader takes the first
 * one it sees in a run as the run's beginning and forgets old points at each later one only. */
static int events_begin(ty_events *e, int64_t resume_step, ty_error *err)
{
    ty_buf version = message_buf(), start = message_buf();
    double now_s = ty_events_now();
    ty_event_version(&version, now_s);
    ty_event_session_start(&start, now_s, resume_step > 0 ? resume_step : 0);
    int rc = events_keep(e, &version, err);
    if (rc == 0)
        rc = events_keep(e, &start, err);
    ty_buf_fini(&version);
    ty_buf_fini(&start);
    return rc < 0 ? -1 : ty_events_flush(e, err);
}

static void events_free(ty_events *e)
{
    if (e->fd >= 0)
        close(e->fd);
    for (size_t i = 0; i < e->n_tags; i++)
        free(e->tags[i].name);
    free(e->tags);
    ty_buf_fini(&e->pending);
    ty_arena_fini(&e->arena);
    free(e);
}

int ty_events_open(const char *dir, int64_t resume_step, ty_events **out, ty_error *err)
{
    *out = NULL;
    if (ty_file_mkdirs(dir, 0755, err) < 0)
        return ty_error_wrap(err, "TensorBoard events");
    ty_events *e = calloc(1, sizeof *e);
    if (!e)
        return ty_error_set(err, TY_E_LIMIT, "out of memory for the event file in %s", dir);
    e->fd = -1;
    ty_arena_init(&e->arena);
    ty_buf_init(&e->pending, PENDING_MAX_BYTES);
    if (events_create(e, dir, err) < 0 || events_begin(e, resume_step, err) < 0) {
        events_free(e);
        return ty_error_wrap(err, "TensorBoard events");
    }
    *out = e;
    return 0;
}

const char *ty_events_path(const ty_events *e)
{
    return e->path;
}

/* The tag's row, made on first sight; NULL when memory is out. Few tags: a linear search is quick. */
static struct tag *events_tag(ty_events *e, const char *name)
{
    for (size_t i = 0; i < e->n_tags; i++)
        if (strcmp(e->tags[i].name, name) == 0)
            return &e->tags[i];
    struct tag *tags = realloc(e->tags, (e->n_tags + 1) * sizeof *tags);
    if (!tags)
        return NULL;
    e->tags = tags;
    char *copy = strdup(name);
    if (!copy)
        return NULL;
    tags[e->n_tags] = (struct tag){.name = copy, .last_step = INT64_MIN};
    return &tags[e->n_tags++];
}

/* A scalar, or a text where that is not NULL. */
static int events_value(ty_events *e, int64_t step, double wall_s, const char *tag, float value, const char *text,
                        ty_error *err)
{
    size_t tag_bytes = strlen(tag);
    if (tag_bytes == 0 || tag_bytes > TY_EVENTS_TAG_BYTES)
        return ty_error_set(err, TY_E_RANGE, "event tag: expected 1 to %d bytes, found %zu", TY_EVENTS_TAG_BYTES,
                            tag_bytes);
    struct tag *row = events_tag(e, tag);
    if (!row)
        return ty_error_set(err, TY_E_LIMIT, "out of memory for event tag \"%s\"", tag);
    if (step <= row->last_step)
        return 0;
    ty_buf message = message_buf();
    /* A time that is NaN makes readers give the file up. */
    wall_s = isfinite(wall_s) ? wall_s : ty_events_now();
    if (text)
        ty_event_text(&message, wall_s, step, tag, text, !row->described);
    else
        ty_event_scalar(&message, wall_s, step, tag, value, !row->described);
    int rc = events_keep(e, &message, err);
    ty_buf_fini(&message);
    if (rc == 0) {
        row->last_step = step;
        row->described = true;
    }
    if (rc == 0 && (double)(ty_clock_ms() - e->oldest_ms) >= TY_EVENTS_FLUSH_S * 1e3)
        rc = ty_events_flush(e, err);
    return rc;
}

int ty_events_scalar(ty_events *e, int64_t step, double wall_s, const char *tag, float value, ty_error *err)
{
    return events_value(e, step, wall_s, tag, value, NULL, err);
}

int ty_events_text(ty_events *e, int64_t step, double wall_s, const char *tag, const char *text, ty_error *err)
{
    if (strlen(text) > TY_EVENTS_TEXT_BYTES)
        return ty_error_set(err, TY_E_RANGE, "event text: expected up to %d bytes, found %zu", TY_EVENTS_TEXT_BYTES,
                            strlen(text));
    return events_value(e, step, wall_s, tag, 0, text, err);
}

/* One record, one write(): a reader on the other side sees whole records only. */
static int write_record(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

int ty_events_flush(ty_events *e, ty_error *err)
{
    int failed = 0;
    size_t at = 0;
    while (at < e->pending.len && !failed) {
        const void *payload;
        size_t payload_bytes, start = at;
        if (ty_tfrecord_next(e->pending.data, e->pending.len, PENDING_MAX_BYTES, &at, &payload, &payload_bytes) !=
            TY_TFRECORD_OK)
            break;
        failed = write_record(e->fd, e->pending.data + start, at - start);
        if (!failed)
            e->whole_bytes += (off_t)(at - start);
    }
    ty_buf_clear(&e->pending);
    e->pending.failed = false;
    if (!failed)
        return 0;
    for (size_t i = 0; i < e->n_tags; i++)
        e->tags[i].described = false; /* the record that did it may be among the lost ones */
    /* A torn record in the middle would end the file for every reader. */
    if (ftruncate(e->fd, e->whole_bytes) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot cut %s back to its last whole record", e->path);
    return ty_error_errno(err, TY_E_NONE, failed, "cannot write events to %s", e->path);
}

int ty_events_close(ty_events *e, ty_error *err)
{
    if (!e)
        return 0;
    int rc = ty_events_flush(e, err);
    if (rc == 0 && fsync(e->fd) < 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot sync %s", e->path);
    events_free(e);
    return rc;
}
