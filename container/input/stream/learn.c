/* learn.c - what has to be known of all records before the first is used: how wide LibSVM's rows are, what transforms
 * learn (map/map.h), and the mean of pictures (image/plan.h).
 *
 * Files are read from end to end for it, once for each of the two, in as little memory as in training. A channel in
 * Pipe mode would lose an epoch, and is refused.
 */
#include "base/clock.h"
#include "base/log.h"
#include "container/input/stream/opened.h"

#include <string.h>

static bool field_learns(const records_field *f)
{
    return (f->declared.map && !ty_map_is_settled(f->declared.map)) || ty_media_learns(&f->media);
}

static bool stream_has_unsettled(const stream_opened *s)
{
    for (int i = 0; i < s->records.n_fields; i++)
        if (field_learns(&s->records.field[i]))
            return true;
    return false;
}

static int learn_refuse_pipe(const stream_opened *s, ty_error *err)
{
    if (s->records.has_to_look) {
        ty_error_set(err, TY_E_CONFIG, "a stream of LibSVM does not tell how wide its rows are, nor its first index");
        return ty_error_help(err, "declare both: shape: [N] of the field \"features\", and index_base: one (or zero)");
    }
    int i = 0;
    while (!field_learns(&s->records.field[i]))
        i++;
    ty_error_set(err, TY_E_CONFIG, "field \"%s\": its transform has to learn of all data, and a FIFO passes once",
                 s->records.field[i].declared.name);
    return ty_error_help(err, "say data.train.preprocessing: FILE, the preprocessing.json of a run that has learnt on "
                              "such files (max_steps: 1 is enough), or give the channel the mode File or FastFile");
}

static int learn_record(stream_opened *s, const ty_stream_config *c, records_look *look, const ty_cursor_record *r,
                        ty_error *err)
{
    ty_frame frame = {.data = r->data, .n = r->n, .at = (size_t)r->at, .record = r->record};
    if (stream_check_sum(s, r->data, r->n, err) < 0)
        return -1;
    if (s->records.has_to_look)
        return s->records.kind->learn(&s->records, &frame, err);
    if (stream_first(s, &frame, &c->agree, err) < 0)
        return -1;
    if (s->records.kind->find(look, &frame, err) < 0)
        return -1;
    /* Where records may be left out, the whole of one is looked at before anything is learnt of it. */
    for (int i = 0; i < s->records.n_fields; i++) {
        bool learns = ty_media_learns(&s->records.field[i].media);
        if ((s->stream.bad.skip || learns) && records_see(look, i, &s->field[i], 0, err) < 0)
            return -1;
    }
    return records_learn(look, err);
}

/* What is known of the fields, to go back to where a record turns out bad in its middle. */
typedef struct learn_known {
    ty_field_info *info;
    records_field *field;
} learn_known;

static void learn_keep(const stream_opened *s, const learn_known *k)
{
    memcpy(k->info, s->field, (size_t)s->records.n_fields * sizeof *k->info);
    memcpy(k->field, s->records.field, (size_t)s->records.n_fields * sizeof *k->field);
}

static void learn_go_back(stream_opened *s, const learn_known *k)
{
    memcpy(s->field, k->info, (size_t)s->records.n_fields * sizeof *k->info);
    memcpy(s->records.field, k->field, (size_t)s->records.n_fields * sizeof *k->field);
}

static int learn_records(stream_opened *s, const ty_stream_config *c, records_look *look, int64_t *n, ty_error *err)
{
    char place[TY_ERROR_PLACE_BYTES];
    ty_cursor_record r;
    ty_bad bad = s->stream.bad;
    learn_known known = {TY_NEW_ARRAY(&s->arena, ty_field_info, s->records.n_fields),
                         TY_NEW_ARRAY(&s->arena, records_field, s->records.n_fields)};
    int rc;
    bad.quiet = true;
    for (; (rc = ty_cursor_next(&s->cursor, &r, err)) > 0; ++*n) {
        if (bad.skip)
            learn_keep(s, &known);
        if (learn_record(s, c, look, &r, err) == 0)
            continue;
        stream_record where = {.record = r.record, .at = r.at, .file = r.file};
        ty_error_at(err, "%s", stream_place(s, &where, place, sizeof place));
        if (ty_bad_leave_out(&bad, err) < 0)
            return -1;
        learn_go_back(s, &known);
    }
    return rc < 0 ? ty_error_at(err, "%s", s->files[r.file].path) : 0;
}

static int learn_pass(stream_opened *s, const ty_stream_config *c, const char *what, ty_error *err)
{
    records_look look;
    ty_error error = {0};
    int64_t start = ty_clock_ns(), n = 0;
    int *which = TY_NEW_ARRAY(&s->arena, int, s->n_files);
    for (int i = 0; i < s->n_files; i++)
        which[i] = i;
    int rc = records_look_init(&look, &s->records, -1, &error);
    if (rc == 0)
        rc = stream_begin(s, which, s->n_files, &error);
    if (rc > 0)
        rc = learn_records(s, c, &look, &n, &error);
    stream_end(s);
    records_look_fini(&look);
    if (rc < 0 && err)
        *err = error;
    if (rc == 0)
        ty_log_info("input", "%s: looked at %lld records in %d files before the first epoch, %.3g s", what,
                    (long long)n, s->n_files, (double)(ty_clock_ns() - start) / 1e9);
    return rc;
}

static int learn_settle(stream_opened *s, const ty_stream_config *c, ty_error *err)
{
    for (int i = 0; i < s->records.n_fields; i++) {
        ty_map *map = s->records.field[i].declared.map;
        if (map && !ty_map_is_settled(map) &&
            (ty_agree_map(&c->agree, map, err) < 0 ||
             records_settle_map(&s->records.field[i], s->stream.format, s->n_files > 0 ? s->files : NULL, err) < 0))
            return -1;
    }
    return records_take_means(&s->records, &c->agree, err);
}

/* A picture or sound that may be left out is decoded to see whether it is one. */
static void learn_decode_all(stream_opened *s, bool all)
{
    for (int i = 0; i < s->records.n_fields; i++)
        ty_media_decode_all(&s->records.field[i].media, all);
}

int stream_learn(stream_opened *s, const ty_stream_config *c, ty_error *err)
{
    if (s->is_pipe && (s->records.has_to_look || stream_has_unsettled(s)))
        return learn_refuse_pipe(s, err);
    if (s->records.has_to_look && (learn_pass(s, c, "the width of LibSVM's rows", err) < 0 ||
                                   s->records.kind->learnt(&s->records, &c->agree, err) < 0))
        return -1;
    if (!stream_has_unsettled(s))
        return 0;
    learn_decode_all(s, s->stream.bad.skip);
    int rc = learn_pass(s, c, "transforms that learn", err);
    learn_decode_all(s, false);
    return rc < 0 ? -1 : learn_settle(s, c, err);
}
