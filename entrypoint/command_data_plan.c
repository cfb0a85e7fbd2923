/* command_data_plan.c - `trainyard data plan RECIPE`: the facts of a job found out, and what follows from them printed.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "container/input/survey.h"
#include "container/input/format.h"
#include "container/input/sampler.h"
#include "container/input/stream/source.h"
#include "container/input/stream/stream.h"
#include "container/input/subset.h"
#include "entrypoint/command_data.h"
#include "entrypoint/data_plan.h"
#include "entrypoint/length.h"
#include "entrypoint/local_process.h"
#include "entrypoint/memory.h"
#include "entrypoint/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Larger data are not read to be counted. */
#define PLAN_COUNT_BYTES ((uint64_t)2 << 30)

typedef struct plan_section {
    const char *name; /* "train" */
    const char *path; /* NULL: not known here */
    ty_data_plan_facts facts;
    ty_data_plan plan;
    uint64_t file_bytes, group_bytes; /* as they lie there; of Parquet: row groups that a stream has in memory */
    int64_t rows;                     /* of columns: of all files; 0: not known */
    const char *note;                 /* why something is not known; NULL */
} plan_section;

typedef struct planner {
    const ty_arguments_given *given;
    ty_arena *a;
    ty_recipe recipe;
    plan_section section[2];
    int n_sections;
} planner;

static int plan_number(const ty_arguments_given *given, int option, const char *name, int *out, ty_error *err)
{
    const char *text = given->value[option];
    char *end;
    long n = text ? strtol(text, &end, 10) : 1;
    *out = (int)n;
    if (text && (end == text || *end || n < 1 || n > 4096))
        return ty_error_set(err, TY_E_USAGE, "%s needs a number from 1 to 4096, found \"%.100s\"", name, text);
    return 0;
}

static int plan_mode(const ty_arguments_given *given, const char *path, ty_job_mode *out, ty_error *err)
{
    static const char *const names[] = {"File", "FastFile", "Pipe"};
    const char *text = given->value[TY_DATA_MODE];
    *out = path && !ty_file_exists(path) && ty_channel_has_fifo(path) ? TY_JOB_PIPE : TY_JOB_FILE;
    for (int i = 0; text && i < 3; i++)
        if (strcasecmp(text, names[i]) == 0) {
            *out = (ty_job_mode)i;
            return 0;
        }
    return text ? ty_error_set(err, TY_E_USAGE, "--mode needs File, FastFile or Pipe, found \"%.100s\"", text) : 0;
}

/* As their footers say; 0: one of them does not. */
static int64_t plan_count_rows(const ty_recipe_data *d, const ty_data_file *file, int n)
{
    int64_t rows = 0;
    for (int i = 0; i < n; i++) {
        if (d->pattern && !ty_file_matches(&file[i], d->pattern))
            continue;
        int64_t more = ty_parquet_measure(file[i].path, d->fields, d->n_fields).n_rows;
        if (more == 0)
            return 0;
        rows += more;
    }
    return rows;
}

/* Bytes, sizes, format. What cannot be opened is told by who trains; here it is a note. */
static void plan_look_at_files(planner *p, const ty_recipe_data *d, plan_section *s, const ty_data_source *source)
{
    ty_error why = {0};
    ty_data_file *file;
    const ty_format *format = NULL;
    int n = 0;
    uint64_t least = UINT64_MAX, most = 0;
    if (ty_files_list(source->paths, 1, p->a, &file, &n, &why) < 0 ||
        ty_format_detect(source, file, n, &format, &why) < 0) {
        s->note = ty_arena_strdup(p->a, why.message);
        return;
    }
    s->facts.format = format->name;
    s->facts.is_table = strcmp(format->name, "csv") == 0;
    const ty_data_file *first = NULL;
    s->facts.access.is_records = ty_access_is_records(format->name);
    s->facts.access.is_decoded = ty_format_is_columns(format->name);
    for (int i = 0; i < n; i++) {
        uint64_t bytes = (uint64_t)file[i].n_bytes;
        if (d->pattern && !ty_file_matches(&file[i], d->pattern))
            continue;
        s->facts.part.n_files++;
        s->facts.access.bytes += bytes;
        first = first ? first : &file[i];
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    s->facts.part.even_files = (double)most <= 1.2 * (double)least;
    s->file_bytes = s->facts.access.bytes;
    if (!s->facts.access.is_decoded || !first)
        return;
    ty_parquet_memory memory = ty_parquet_measure(first->path, d->fields, d->n_fields);
    s->facts.access.bytes = (uint64_t)((double)s->file_bytes * memory.growth);
    s->group_bytes = 2 * memory.group_bytes;
    s->rows = plan_count_rows(d, file, n);
}

/* As declared, or as the files have them. */
static int plan_fields(planner *p, const ty_recipe_data *d, ty_data_source *source, ty_error *err)
{
    ty_data_survey survey;
    source->fields = d->fields;
    source->n_fields = d->n_fields;
    if (d->n_fields > 0)
        return 0;
    if (ty_data_survey_make(source, p->a, &survey, err) < 0)
        return -1;
    ty_field *field = TY_NEW_ARRAY(p->a, ty_field, survey.n_parts);
    for (int i = 0; i < survey.n_parts; i++) {
        if (survey.part[i].is_text)
            continue;
        ty_field f = ty_field_make(survey.part[i].name ? survey.part[i].name : ty_arena_printf(p->a, "column %d", i));
        f.file = survey.part[i].file;
        f.columns = survey.is_table ? ty_arena_printf(p->a, "%d", i) : NULL;
        f.missing_given = survey.is_table;
        field[source->n_fields++] = f;
    }
    source->fields = field;
    return 0;
}

static void plan_look_inside(planner *p, const ty_recipe_data *d, plan_section *s, ty_data_source *source)
{
    ty_error why = {0};
    ty_dataset *ds = NULL;
    source->types_only = s->facts.access.bytes > PLAN_COUNT_BYTES || s->rows > 0;
    if (plan_fields(p, d, source, &why) < 0 || ty_dataset_open(source, &ds, &why) < 0) {
        s->note = ty_arena_strdup(p->a, why.message);
        return;
    }
    s->facts.row_bytes = ty_session_batch_bytes(ds, 1);
    s->facts.work_bytes = ty_dataset_work_bytes(ds);
    s->facts.samples = ds->is_partial ? s->rows : ds->n_samples;
    if (ds->is_partial && s->rows == 0)
        s->note = "too many bytes to count samples here";
    ty_dataset_close(ds);
}

static void plan_look(planner *p, const ty_recipe_data *d, plan_section *s)
{
    ty_data_source source = {.paths = &s->path,
                             .n_paths = 1,
                             .pattern = d->pattern,
                             .format = d->format,
                             .csv_header = (ty_csv_header)d->header,
                             .csv_delimiter = d->delimiter ? d->delimiter[0] : 0,
                             .index_base = (ty_index_base)d->index_base,
                             .lenient = d->lenient,
                             .csv_missing = d->missing_values,
                             .blank_lines = d->blank_lines,
                             .skip_bad = d->skip_bad,
                             .max_bad = d->max_bad,
                             .no_map = true};
    if (!s->path) {
        s->note = "where the channel lies is not known here (--data-dir)";
        return;
    }
    if (!ty_file_exists(s->path)) {
        s->note = "nothing is there yet";
        return;
    }
    plan_look_at_files(p, d, s, &source);
    if (!s->note)
        plan_look_inside(p, d, s, &source);
}

static int plan_section_of(planner *p, bool is_train, ty_error *err)
{
    const ty_recipe *r = &p->recipe;
    const ty_recipe_data *d = is_train ? &r->train : &r->validation;
    plan_section *s = &p->section[p->n_sections++];
    ty_data_plan_facts *f = &s->facts;
    const char *memory, *folder = p->given->value[TY_DATA_DIR];
    const ty_doc *at;
    int hosts, processes;
    *s = (plan_section){.name = is_train ? "train" : "validation"};
    s->path = d->path ? d->path : folder ? ty_arena_printf(p->a, "%s/%s", folder, d->channel) : NULL;
    if (plan_number(p->given, TY_DATA_HOSTS, "--hosts", &hosts, err) < 0 ||
        plan_number(p->given, TY_DATA_PROCESSES, "--processes", &processes, err) < 0 ||
        plan_mode(p->given, s->path, &f->access.mode, err) < 0)
        return -1;
    plan_look(p, d, s);
    f->is_train = is_train;
    f->access.wanted = (ty_access)d->access;
    f->access.memory_bytes = r->memory_bytes ? r->memory_bytes : ty_memory_limit(&memory);
    f->access.needs_length = is_train && ty_length_needed(r, &at) != NULL && !f->access.is_decoded;
    f->part.wanted = (ty_part_rule)d->shard;
    f->part.place = (ty_place){.hosts = hosts, .locals = processes, .ranks = hosts * processes};
    f->part.sharded = p->given->value[TY_DATA_SHARDED] != NULL;
    f->n_alike = 1;
    f->samples = d->samples > 0 ? d->samples : f->samples;
    if (r->validation.split > 0 && f->samples > 1) {
        int64_t n_split = ty_split_samples(f->samples, r->validation.split);
        f->samples = is_train ? f->samples - n_split : n_split;
    }
    f->batch_size = r->batch_size;
    f->epochs = r->epochs;
    f->shuffles = is_train && d->shuffle;
    f->shuffle_rows = d->shuffle_buffer;
    f->remainder = d->remainder;
    f->cores = ty_local_cores();
    f->memory_said = r->data_memory_bytes;
    f->shuffle_limit = r->data_memory_bytes ? ty_input_shuffle_bytes(r->data_memory_bytes) : TY_STREAM_MEMORY_BYTES;
    f->block_bytes = ty_source_bytes(f->access.mode == TY_JOB_FAST_FILE ? TY_BLOCK_FAST_BYTES : TY_BLOCK_BYTES);
    f->block_bytes += s->group_bytes;
    int mine = processes > 1 && f->cores > processes ? f->cores / processes : f->cores;
    f->max_workers = r->data_threads > 0 ? (int)r->data_threads : ty_ring_workers(mine);
    f->workers = r->data_threads > 0 ? f->max_workers : 1;
    const char *why;
    uint64_t kept = ty_access_streams(&f->access, &why) ? f->block_bytes + (f->shuffles ? f->shuffle_limit : 0)
                    : f->shuffles                       ? ty_sampler_table_bytes(f->samples)
                                                        : 0;
    kept += f->work_bytes * (uint64_t)f->workers;
    f->depth = ty_ring_depth(f->max_workers, (uint64_t)(r->batch_size / (hosts * processes)) * f->row_bytes,
                             ty_input_ring_bytes(r, !is_train, kept), f->access.memory_bytes);
    if (!s->note && f->access.mode == TY_JOB_PIPE && is_train && processes > 1)
        s->note =
            ty_arena_printf(p->a,
                            "a FIFO has one reader: each of the %d processes of a host needs a channel of its own, "
                            "%s, %s-1 ...",
                            processes, d->channel ? d->channel : "train", d->channel ? d->channel : "train");
    ty_data_plan_make(f, &s->plan);
    return 0;
}

/* ---- printing ---- */

/* On a rank, at most. */
static void plan_print_memory(const plan_section *s)
{
    char text[32];
    const ty_data_plan *plan = &s->plan;
    const ty_data_plan_facts *f = &s->facts;
    if (plan->ring_bytes + plan->order_bytes + plan->block_bytes == 0)
        return;
    printf("  %-9s on a rank", "memory");
    if (plan->ring_bytes > 0)
        printf(" %s of batches,", ty_bytes_text(plan->ring_bytes, text, sizeof text));
    if (plan->work_bytes > 0)
        printf(" up to %s that threads decode in,", ty_bytes_text(plan->work_bytes, text, sizeof text));
    if (plan->block_bytes > 0)
        printf(" %s of blocks that are read,", ty_bytes_text(plan->block_bytes, text, sizeof text));
    if (plan->order_bytes > 0 && plan->streams)
        printf(" up to %s in the shuffle buffer,", ty_bytes_text(plan->order_bytes, text, sizeof text));
    if (plan->order_bytes > 0 && !plan->streams)
        printf(" %s for the order,", ty_bytes_text(plan->order_bytes, text, sizeof text));
    if (f->memory_said > 0)
        printf(" within %s (data_memory)\n", ty_bytes_text(f->memory_said, text, sizeof text));
    else
        printf(" data_memory is not said\n");
}

static void plan_print_counts(const planner *p, const plan_section *s)
{
    char text[32], more[32];
    const ty_data_plan *plan = &s->plan;
    if (plan->batches > 0)
        printf("  %-9s %s batches an epoch%s: %s samples\n", "steps", ty_count_text(plan->batches, text, sizeof text),
               plan->is_agreed ? ", or what the ranks agree on" : "",
               ty_count_text(s->facts.samples, more, sizeof more));
    else
        printf("  %-9s not known before the first epoch has ended (data.%s.samples says it)\n", "steps", s->name);
    if (s->facts.is_train && plan->batches > 0 && p->recipe.accumulate > 1)
        printf("  %-9s a step takes %lld batches\n", "", (long long)p->recipe.accumulate);
    plan_print_memory(s);
    printf("  %-9s %d core%s of this machine, shared by decoding and computing\n", "threads", s->facts.cores,
           s->facts.cores == 1 ? "" : "s");
}

static void plan_print(const planner *p, const plan_section *s)
{
    static const char *const modes[] = {"File", "FastFile", "Pipe"};
    char text[32];
    printf("data.%s: %s mode, %s, %d file%s, %s\n", s->name, modes[s->facts.access.mode],
           s->facts.format ? s->facts.format : "format not known", s->facts.part.n_files,
           s->facts.part.n_files == 1 ? "" : "s", ty_bytes_text(s->file_bytes, text, sizeof text));
    bool is_known = s->plan.streams || s->facts.format;
    printf("  %-9s %s\n            because: %s\n", "access", s->plan.streams ? "as a stream" : "by number",
           is_known ? s->plan.why_access : "most formats are; nothing is known of these files yet");
    for (int i = 0; i < TY_DATA_PLAN_STAGES; i++)
        printf("  %-9s %s\n            because: %s\n", s->plan.stage[i].name, s->plan.stage[i].what,
               s->plan.stage[i].why);
    plan_print_counts(p, s);
    if (s->note)
        printf("note: %s\n", s->note);
    if (s->plan.problem[0])
        printf("problem: %s\n", s->plan.problem);
}

static void plan_print_json(const planner *p)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    for (int k = 0; k < p->n_sections; k++) {
        const plan_section *s = &p->section[k];
        ty_json_open_map(&w, s->name);
        ty_json_put_string(&w, "access", s->plan.streams ? "stream" : "random");
        ty_json_put_string(&w, "access_why", s->plan.why_access);
        ty_json_put_string(&w, "format", s->facts.format);
        ty_json_put_int(&w, "files", s->facts.part.n_files);
        ty_json_put_int(&w, "bytes", (int64_t)s->file_bytes);
        ty_json_open_list(&w, "stages");
        for (int i = 0; i < TY_DATA_PLAN_STAGES; i++) {
            ty_json_open_map(&w, NULL);
            ty_json_put_string(&w, "stage", s->plan.stage[i].name);
            ty_json_put_string(&w, "what", s->plan.stage[i].what);
            ty_json_put_string(&w, "why", s->plan.stage[i].why);
            ty_json_close(&w);
        }
        ty_json_close(&w);
        ty_json_put_int(&w, "parts", s->plan.part.n);
        ty_json_put_bool(&w, "by_file", s->plan.streams && s->plan.part.by_file);
        ty_json_put_int(&w, "rows_of_rank", s->plan.rank_rows);
        ty_json_put_int(&w, "batches_of_epoch", s->plan.batches);
        ty_json_put_bool(&w, "agreed", s->plan.is_agreed);
        ty_json_put_int(&w, "ring_depth", s->facts.depth);
        ty_json_put_int(&w, "ring_bytes", (int64_t)s->plan.ring_bytes);
        ty_json_put_int(&w, "decode_bytes", (int64_t)s->plan.work_bytes);
        ty_json_put_int(&w, "block_bytes", (int64_t)s->plan.block_bytes);
        ty_json_put_int(&w, "order_bytes", (int64_t)s->plan.order_bytes);
        ty_json_put_int(&w, "data_memory", (int64_t)s->facts.memory_said);
        ty_json_put_int(&w, "threads", s->facts.workers);
        ty_json_put_int(&w, "max_threads", s->facts.max_workers);
        ty_json_put_string(&w, "problem", s->plan.problem[0] ? s->plan.problem : NULL);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

int ty_command_data_plan(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    planner p = {.given = given, .a = a};
    if (ty_recipe_load(given->words[1], NULL, 0, a, &p.recipe, err) < 0 || plan_section_of(&p, true, err) < 0)
        return -1;
    if (p.recipe.validation.given && plan_section_of(&p, false, err) < 0)
        return -1;
    if (given->value[TY_DATA_JSON])
        plan_print_json(&p);
    for (int i = 0; !given->value[TY_DATA_JSON] && i < p.n_sections; i++)
        plan_print(&p, &p.section[i]);
    bool is_refused = false;
    for (int i = 0; i < p.n_sections; i++)
        is_refused |= p.section[i].plan.problem[0] != 0;
    return is_refused ? 1 : 0;
}
