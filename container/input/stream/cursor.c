/* cursor.c - see cursor.h. */
#include "container/input/stream/cursor.h"

#include <stdlib.h>
#include <string.h>

void ty_cursor_start(ty_cursor *c, ty_source *source)
{
    bool is_nested = c->wrapped || c->n_attributes > 0;
    c->source = source;
    c->outer =
        (ty_frames){.how = is_nested ? TY_FRAMES_RECORDIO : c->how, .unchecked = true, .joined = c->outer.joined};
    c->inner = (ty_frames){.how = c->how, .unchecked = true, .joined = c->inner.joined};
    c->has_window = c->is_last = c->is_held = c->was_restarted = false;
    c->n_seen = c->n_grouped = 0;
    if (c->n_attributes > 0 && !c->group.data)
        ty_buf_init(&c->group, 2 * TY_FRAME_MAX_BYTES);
}

void ty_cursor_end(ty_cursor *c)
{
    ty_source_close(c->source);
    c->source = NULL;
    ty_frames_fini(&c->outer);
    ty_frames_fini(&c->inner);
    if (c->group.data)
        ty_buf_fini(&c->group);
    c->group = (ty_buf){0};
    free(c->joined);
    c->joined = NULL;
    c->joined_bytes = 0;
}

/* Too much is left to stand in front of the next block: both together in memory of their own. */
static int cursor_join(ty_cursor *c, size_t rest, const ty_block *block, ty_error *err)
{
    const uint8_t *from = c->outer.bytes + c->outer.at;
    bool is_joined = c->joined && from >= c->joined && from < c->joined + c->joined_bytes;
    if (is_joined)
        memmove(c->joined, from, rest);
    if (rest + block->n > c->joined_bytes) {
        size_t room = 2 * (rest + block->n);
        uint8_t *grown = realloc(c->joined, room);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a record of more than %zu bytes", rest);
        c->joined = grown;
        c->joined_bytes = room;
    }
    if (!is_joined)
        memcpy(c->joined, from, rest);
    memcpy(c->joined + rest, block->data, block->n);
    c->outer.bytes = c->joined;
    return 0;
}

/* The next block behind what is left of the window. 1, 0 at the end, -1. */
static int cursor_fetch(ty_cursor *c, ty_error *err)
{
    ty_block block;
    if (c->is_held) {
        c->outer.at = c->outer.looked = 0;
        c->outer.record = 0;
        c->was_restarted = true;
    }
    size_t rest = c->has_window ? c->outer.n - c->outer.at : 0;
    int rc = c->is_last ? 0 : ty_source_next(c->source, &block, err);
    if (rc <= 0)
        return rc;
    if (rest <= TY_BLOCK_HEAD) {
        if (rest > 0)
            memcpy(block.data - rest, c->outer.bytes + c->outer.at, rest);
        c->outer.bytes = block.data - rest;
    } else if (cursor_join(c, rest, &block, err) < 0) {
        return -1;
    }
    if (!c->has_window)
        c->outer.record = 0;
    c->outer.n = rest + block.n;
    c->outer.base = (size_t)block.at - rest;
    c->outer.at = 0;
    c->outer.more = !block.ends_file;
    c->file = block.file;
    c->is_last = block.ends_files;
    c->has_window = true;
    return 1;
}

/* The next frame of the files' own. */
static int cursor_outer(ty_cursor *c, ty_frame *out, ty_error *err)
{
    for (;;) {
        int rc = c->has_window ? ty_frames_next(&c->outer, out, err) : 0;
        if (rc == 1 || rc < 0)
            return rc;
        if (c->is_held && c->has_window && (c->n_seen > 0 || !c->outer.more))
            return 0;
        if (!c->outer.more)
            c->has_window = false;
        rc = cursor_fetch(c, err);
        if (rc <= 0)
            return rc;
    }
}

/* The next frame in objects that are wrapped. */
static int cursor_inner(ty_cursor *c, ty_frame *out, ty_error *err)
{
    ty_frame object;
    for (;;) {
        int rc = c->inner.n > 0 ? ty_frames_next(&c->inner, out, err) : 0;
        if (rc != 0)
            return rc < 0 ? ty_error_wrap(err, "in the object that is record %lld at byte %lld", (long long)c->object,
                                          (long long)c->object_at)
                          : rc;
        c->inner.n = 0;
        rc = cursor_outer(c, &object, err);
        if (rc <= 0)
            return rc;
        c->inner.bytes = object.data;
        c->inner.n = object.n;
        c->inner.at = 0;
        c->inner.record = 0;
        c->object = object.record;
        c->object_at = (int64_t)object.at;
    }
}

static int cursor_incomplete(const ty_cursor *c, ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "the stream ends within a sample: expected %d records for it, found %d",
                 c->n_attributes, c->n_grouped);
    return ty_error_help(err, "each line of the augmented manifest must have every attribute that the job names, and "
                              "attributes: must list as many");
}

/* As many records as there are attributes. */
static int cursor_group(ty_cursor *c, ty_cursor_record *out, ty_error *err)
{
    ty_frame one;
    ty_buf_clear(&c->group);
    for (c->n_grouped = 0; c->n_grouped < c->n_attributes; c->n_grouped++) {
        int rc = cursor_outer(c, &one, err);
        if (rc == 0 && c->n_grouped > 0 && !c->is_held && c->is_last && c->outer.at == c->outer.n)
            return cursor_incomplete(c, err);
        if (rc <= 0)
            return rc;
        if (c->was_restarted) {
            c->was_restarted = false;
            ty_buf_clear(&c->group);
            c->n_grouped = 0;
        }
        uint64_t n = one.n;
        if (c->n_grouped == 0)
            *out = (ty_cursor_record){.record = one.record / c->n_attributes, .at = (int64_t)one.at};
        if (ty_buf_add(&c->group, &n, sizeof n) < 0 || ty_buf_add(&c->group, one.data, one.n) < 0)
            return ty_error_set(err, TY_E_LIMIT, "a sample of more than %zu bytes", c->group.max_bytes);
    }
    out->data = (const uint8_t *)c->group.data;
    out->n = c->group.len;
    return 1;
}

int ty_cursor_next(ty_cursor *c, ty_cursor_record *out, ty_error *err)
{
    ty_frame frame;
    int rc;
    if (c->n_attributes > 0) {
        rc = cursor_group(c, out, err);
    } else {
        do
            rc = c->wrapped ? cursor_inner(c, &frame, err) : cursor_outer(c, &frame, err);
        while (rc == 1 && c->is_none && c->is_none(&frame));
        if (rc == 1)
            *out = (ty_cursor_record){.data = frame.data,
                                      .n = frame.n,
                                      .record = c->wrapped ? c->object : frame.record,
                                      .at = c->wrapped ? c->object_at : (int64_t)frame.at};
    }
    out->file = c->file;
    c->n_seen += rc == 1;
    return rc;
}

void ty_cursor_hold(ty_cursor *c)
{
    c->is_held = true;
}

void ty_cursor_rewind(ty_cursor *c)
{
    c->is_held = c->was_restarted = false;
    c->outer.at = c->outer.looked = 0;
    c->outer.record = 0;
    c->inner.n = 0;
    c->n_seen = 0;
}
