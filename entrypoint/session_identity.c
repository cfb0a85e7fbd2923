/* session_identity.c - what a run is known by: all that decides which samples make which batch.
 *
 * A checkpoint bears it twice: as a hash, which decides whether a run may go on from there, and as a text of parts,
 * "seed 1, batch_size 64, ...", which tells what is another where it may not. Parts are compared by name, so that they
 * can become more.
 */
#include "base/hash.h"
#include "entrypoint/session.h"

#include <string.h>

#define PART_END ", "

/* They decide which samples go together. */
static void describe_lengths(const ty_session *s, const char *name, ty_buf *out)
{
    for (int i = 0; i < s->lengths.n; i++)
        ty_buf_addf(out, "%s %lld", i == 0 ? name : "", (long long)s->lengths.length[i]);
}

int ty_session_hash(const ty_session *s, int64_t batch, char *hex, ty_error *err)
{
    static const char *const remainder[] = {"", " pad", " join"}; /* checkpoints from before it could be chosen: drop */
    ty_buf text;
    uint8_t digest[TY_SHA256_BYTES];
    ty_buf_init(&text, 1 << 12);
    ty_buf_addf(&text, "seed %lld batch %lld accumulate %lld shuffle %d samples %lld data %016llx%s",
                (long long)s->recipe.seed, (long long)batch, (long long)s->recipe.accumulate, s->recipe.train.shuffle,
                (long long)s->n_samples, (unsigned long long)(s->train_sharded ? 0 : s->train->fingerprint),
                remainder[s->recipe.train.remainder]);
    if (s->train_stream.is_on)
        ty_session_stream_hash(s, &text);
    describe_lengths(s, " lengths", &text);
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "no memory for what a run is known by")
                         : ty_sha256_bytes(text.data, text.len, digest, err);
    ty_buf_fini(&text);
    if (rc < 0)
        return -1;
    ty_sha256_hex(digest, hex);
    return 0;
}

/* ---- in words ---- */

/* Manifests hold printable ASCII, and parts end at blanks. */
static void add_name(ty_buf *out, char before, const char *name)
{
    ty_buf_addc(out, before);
    for (; *name; name++)
        ty_buf_addc(out, *name > ' ' && *name < 127 && *name != ',' ? *name : '_');
}

static void describe_files(const ty_dataset *ds, ty_buf *out)
{
    int64_t n_bytes = 0;
    for (int i = 0; i < ds->n_files; i++)
        n_bytes += (int64_t)ds->files[i].n_bytes;
    ty_buf_addf(out, ", data.train %d file%s of %lld bytes (%08x)", ds->n_files, ds->n_files == 1 ? "" : "s",
                (long long)n_bytes, (unsigned)ds->files_fingerprint);
    ty_buf_addf(out, ", data.train.fields (%08x)", (unsigned)ds->fields_fingerprint);
}

/* "data.train.fields.* x+label" */
static void describe_names(const ty_dataset *ds, ty_buf *out)
{
    ty_buf_adds(out, PART_END "data.train.fields.*");
    for (int i = 0; i < ds->n_fields; i++)
        add_name(out, i ? '+' : ' ', ds->field[i].name);
}

/* "data.train.fields.x f32[8] * 2 + 0 (0123abcd)": what is changed most, and whether anything is. */
static void describe_field(const ty_recipe_data *d, const ty_field_info *info, ty_buf *out)
{
    char type[160];
    ty_buf_adds(out, PART_END "data.train.fields");
    add_name(out, '.', info->name);
    ty_buf_addf(out, " %s", ty_type_text(&info->type, type, sizeof type));
    for (int i = 0; i < d->n_fields; i++)
        if (strcmp(d->fields[i].name, info->name) == 0 && (d->fields[i].scale != 1 || d->fields[i].offset != 0))
            ty_buf_addf(out, " * %g + %g", d->fields[i].scale, d->fields[i].offset);
    ty_buf_addf(out, " (%08x)", (unsigned)info->fingerprint);
}

/* As far as there is room: without them the rest still tells that something differs. */
static void describe_fields(const ty_session *s, ty_buf *out)
{
    ty_buf part;
    ty_buf_init(&part, 1 << 20);
    for (int i = -1; i < s->train->n_fields; i++) {
        ty_buf_clear(&part);
        if (i < 0)
            describe_names(s->train, &part);
        else
            describe_field(&s->recipe.train, &s->train->field[i], &part);
        if (!part.failed && out->len + part.len < TY_MANIFEST_RUN_BYTES)
            ty_buf_add(out, part.data, part.len);
    }
    ty_buf_fini(&part);
}

static void describe_stream(const ty_session *s, ty_buf *out)
{
    const ty_session_stream *st = &s->train_stream;
    const ty_recipe *r = &s->recipe;
    ty_buf_addf(out, ", data.train.format %s, input_mode %s", st->face.format,
                st->source.mode == TY_JOB_PIPE ? "Pipe" : "File");
    if (r->train.shuffle)
        ty_buf_addf(out, ", shuffle_buffer %lld, data_memory %llu", (long long)r->train.shuffle_buffer,
                    (unsigned long long)r->data_memory_bytes);
    if (st->part.by_file || st->part.is_uneven)
        ty_buf_addf(out, ", data.train.shard %lld parts%s on %d ranks", (long long)st->part.n,
                    st->part.by_file ? " by file" : "", ty_session_place(s).ranks);
    ty_buf_addf(out, ", data.train.files+fields (%08x)", (unsigned)s->train->fingerprint);
}

static void describe_order(const ty_session *s, ty_buf *out)
{
    static const char *const remainder[] = {"drop", "pad", "join"};
    const ty_recipe_data *d = &s->recipe.train;
    ty_buf_addf(out, ", data.train.access %s, data.train.shuffle %s, data.train.remainder %s",
                s->train_stream.is_on ? "stream" : "random", d->shuffle ? "true" : "false", remainder[d->remainder]);
    describe_lengths(s, PART_END "data.train.length_buckets", out);
    if (s->n_samples > 0)
        ty_buf_addf(out, ", data.train.samples %lld", (long long)s->n_samples);
}

static void describe(const ty_session *s, ty_buf *out)
{
    const ty_recipe *r = &s->recipe;
    ty_buf_addf(out, "seed %lld, batch_size %lld, accumulate %lld", (long long)r->seed, (long long)s->whole_batch,
                (long long)r->accumulate);
    describe_order(s, out);
    if (s->train_stream.is_on)
        describe_stream(s, out);
    else if (!s->train_sharded)
        describe_files(s->train, out);
    if (!s->train_stream.is_on && !s->train_sharded)
        describe_fields(s, out);
}

int ty_session_identify(ty_session *s, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, sizeof s->run_text);
    describe(s, &text);
    bool fits = !text.failed && text.len < sizeof s->run_text;
    memset(s->run_text, 0, sizeof s->run_text);
    if (fits)
        memcpy(s->run_text, text.data, text.len);
    ty_buf_fini(&text);
    return ty_session_hash(s, s->whole_batch, s->run_hash, err);
}

/* ---- what differs ---- */

static size_t part_length(const char *part)
{
    const char *end = strstr(part, PART_END);
    return end ? (size_t)(end - part) : strlen(part);
}

static const char *next_part(const char *part)
{
    part += part_length(part);
    return *part ? part + strlen(PART_END) : part;
}

/* The part of that name; NULL: there is none. */
static const char *find_part(const char *parts, const char *name, size_t n_name)
{
    for (const char *p = parts; *p; p = next_part(p))
        if (strncmp(p, name, n_name) == 0 && p[n_name] == ' ')
            return p;
    return NULL;
}

/* The part of theirs of the same name, if it says something else. */
static const char *find_other(const char *p, const char *theirs)
{
    const char *q = find_part(theirs, p, strcspn(p, " "));
    return q && (part_length(q) != part_length(p) || strncmp(p, q, part_length(p)) != 0) ? q : NULL;
}

/* What differs of data.train.fields as a whole is told where it is: data.train.fields.x. */
static bool is_told_closer(const char *part, const char *mine, const char *theirs)
{
    static const char whole[] = "data.train.fields ", one[] = "data.train.fields.";
    if (strncmp(part, whole, strlen(whole)) != 0)
        return false;
    for (const char *p = mine; *p; p = next_part(p))
        if (strncmp(p, one, strlen(one)) == 0 && find_other(p, theirs))
            return true;
    return false;
}

/* Parts of `mine` that are others in `theirs`, both listed; returns how many. Parts that only one has are left out. */
static int list_differences(const char *mine, const char *theirs, ty_buf *expected, ty_buf *found)
{
    int n = 0;
    for (const char *p = mine; *p; p = next_part(p)) {
        const char *q = find_other(p, theirs);
        if (!q || is_told_closer(p, mine, theirs))
            continue;
        ty_buf_addf(expected, "%s%.*s", n ? " and " : "", (int)part_length(q), q);
        ty_buf_addf(found, "%s%.*s", n ? " and " : "", (int)part_length(p), p);
        n++;
    }
    return n;
}

int ty_session_check_run(const ty_session *s, const ty_train_state *state, ty_error *err)
{
    ty_buf expected, found;
    if (!state->recipe_hash[0] || strcmp(state->recipe_hash, s->run_hash) == 0)
        return 0;
    ty_buf_init(&expected, 2 * TY_MANIFEST_RUN_BYTES);
    ty_buf_init(&found, 2 * TY_MANIFEST_RUN_BYTES);
    if (list_differences(s->run_text, state->run, &expected, &found) > 0 && !expected.failed && !found.failed)
        ty_error_set(err, TY_E_CHECKPOINT, "expected %s, as the checkpoint of step %lld was made with, found %s",
                     expected.data, (long long)state->step, found.data);
    else
        ty_error_set(err, TY_E_CHECKPOINT,
                     "the checkpoint of step %lld was made with another seed, batch size or other data",
                     (long long)state->step);
    ty_buf_fini(&expected);
    ty_buf_fini(&found);
    return ty_error_help(err, "go on with the recipe and data it was made with, or start anew (--fresh, or an empty "
                              "checkpoint folder)");
}
