/* build.c - kernels of plans rendered, dealt to translation units, compiled. See build.h. */
#include "compiler/target/cuda/build.h"

#include "base/crew.h"
#include "base/file.h"
#include "base/version.h"
#include "compiler/target/cpu/render.h"
#include "compiler/target/cuda/frame.h"
#include "compiler/target/cuda/libraries.h"
#include "compiler/target/cuda/render.h"
#include "compiler/target/cuda/tape.h"

#include <string.h>

const ty_ktexts_words ty_cuda_words = {ty_cuda_head, ty_render_prelude, "#undef TY_NAME\n#define TY_NAME ", "\n"};

/* ---- texts ---- */

/* What is left in a folder, by the end of its file's name. */
typedef struct build_left {
    ty_buf code, facts, tapes;
} build_left;

static int build_write(const ty_ktexts *texts, build_left *left, const char *dir, ty_error *err)
{
    char hex[TY_SHA256_HEX_BYTES];
    const ty_ktexts_words bare = {"", "", ty_cuda_words.lead, ty_cuda_words.tail};
    const struct {
        const char *suffix;
        const ty_buf *text;
    } file[] = {{"cu", &left->code}, {"txt", &left->facts}, {"tape", &left->tapes}};
    ty_ktexts_deal(texts, &bare, &left->code, 1);
    int rc = ty_ktexts_hash(texts, &ty_cuda_words, hex, err);
    if (rc == 0)
        rc = ty_file_mkdirs(dir, 0755, err);
    for (size_t i = 0; i < sizeof file / sizeof *file && rc == 0; i++) {
        const char *path = ty_arena_printf(texts->arena, "%s/%.16s.%s", dir, hex, file[i].suffix);
        rc = file[i].text->failed ? ty_error_set(err, TY_E_LIMIT, "out of memory for generated kernels")
                                  : ty_file_write(path, file[i].text->data, file[i].text->len, 0644, err);
    }
    return rc;
}

static int build_leave_plans(const ty_plan *const *plans, int n, bool in_order, ty_ktexts *texts, build_left *left,
                             ty_error *err)
{
    ty_cuda_memory memory;
    ty_cuda_tape *tape = TY_NEW_ARRAY(texts->arena, ty_cuda_tape, n);
    const ty_cuda_tape **all = TY_NEW_ARRAY(texts->arena, const ty_cuda_tape *, n);
    for (int i = 0; i < n; i++) {
        if (ty_cuda_tape_of(plans[i], in_order, texts, texts->arena, &tape[i], err) < 0)
            return -1;
        all[i] = &tape[i];
        ty_cuda_tape_print_facts(&tape[i], &left->facts);
    }
    ty_cuda_memory_measure(&memory, plans, all, n, texts->arena);
    for (int i = 0; i < n; i++) {
        ty_cuda_frame frame;
        ty_cuda_frame_of(plans[i], &tape[i], &memory, texts->arena, &frame);
        ty_cuda_frame_print(&frame, &tape[i], plans[i], &left->tapes);
    }
    return 0;
}

int ty_cuda_leave(const ty_plan *const *plans, int n_plans, bool in_order, const char *dir, ty_error *err)
{
    ty_arena arena;
    build_left left;
    ty_arena_init(&arena);
    ty_buf_init(&left.code, 1u << 30);
    ty_buf_init(&left.facts, 1u << 30);
    ty_buf_init(&left.tapes, 1u << 30);
    ty_ktexts texts = {.arena = &arena};
    int rc = build_leave_plans(plans, n_plans, in_order, &texts, &left, err);
    ty_ktexts_sort(&texts);
    if (rc == 0 && texts.n > 0)
        rc = build_write(&texts, &left, dir, err);
    ty_buf_fini(&left.code);
    ty_buf_fini(&left.facts);
    ty_buf_fini(&left.tapes);
    ty_arena_fini(&arena);
    return rc;
}

/* ---- machine code ---- */

/* A translation unit at work: an arena and an error of its own, since units are compiled at the same time. */
typedef struct build_unit {
    ty_buf text;
    ty_arena arena;
    ty_cuda_object object;
    ty_error err;
    int capability, rc;
} build_unit;

static void build_run(const ty_job *job)
{
    build_unit *u = job->to;
    u->rc = ty_cuda_compile(u->text.data, u->capability, &u->arena, &u->object, &u->err);
}

static void build_copy(const ty_cuda_object *from, ty_arena *a, ty_cuda_object *to)
{
    *to = *from;
    to->cubin = ty_arena_copy(a, from->cubin, from->bytes);
    ty_cuda_kernel_facts *kernel = ty_arena_copy(a, from->kernel, sizeof *kernel * (size_t)from->n_kernels);
    for (int i = 0; i < from->n_kernels; i++)
        kernel[i].name = ty_arena_strdup(a, kernel[i].name);
    to->kernel = kernel;
}

static int build_units(build_unit *unit, int n, int threads, ty_error *err)
{
    ty_job job[TY_CUDA_MAX_UNITS] = {0};
    for (int i = 0; i < n; i++)
        job[i] = (ty_job){.run = build_run, .to = &unit[i]};
    ty_crew *crew = ty_crew_start(job, n, threads - 1);
    if (!crew)
        return ty_error_set(err, TY_E_LIMIT, "no memory to compile kernels");
    ty_crew_end(crew);
    for (int i = 0; i < n; i++)
        if (unit[i].rc < 0) {
            if (err)
                *err = unit[i].err;
            return -1;
        }
    return 0;
}

static int build_n_units(const ty_cuda_build_options *opt, const ty_ktexts *texts)
{
    int n = opt->units > 0 ? opt->units : opt->threads;
    n = n > TY_CUDA_MAX_UNITS ? TY_CUDA_MAX_UNITS : n;
    return n > texts->n ? texts->n : n;
}

/* The texts in units of their own; returns -1 if memory ran out. */
static int build_deal(const ty_ktexts *texts, build_unit *unit, int n, int capability, ty_error *err)
{
    ty_buf text[TY_CUDA_MAX_UNITS];
    int rc = 0;
    for (int i = 0; i < n; i++)
        ty_buf_init(&text[i], 1u << 30);
    ty_ktexts_deal(texts, &ty_cuda_words, text, n);
    for (int i = 0; i < n; i++) {
        unit[i] = (build_unit){.text = text[i], .capability = capability};
        ty_arena_init(&unit[i].arena);
        if (text[i].failed)
            rc = ty_error_set(err, TY_E_LIMIT, "out of memory for generated code");
    }
    return rc;
}

static int build_compile(const ty_ktexts *texts, const ty_cuda_build_options *opt, ty_arena *a, ty_cuda_code *out,
                         ty_error *err)
{
    out->n = build_n_units(opt, texts);
    build_unit *unit = TY_NEW_ARRAY(a, build_unit, out->n);
    int rc = build_deal(texts, unit, out->n, opt->capability, err);
    if (rc == 0)
        rc = build_units(unit, out->n, opt->threads, err);
    for (int i = 0; i < out->n; i++) {
        if (rc == 0)
            build_copy(&unit[i].object, a, &out->object[i]);
        ty_buf_fini(&unit[i].text);
        ty_arena_fini(&unit[i].arena);
    }
    return rc;
}

/* ---- the cache ---- */

typedef struct build_found {
    ty_arena *arena;
    ty_cuda_code *code;
} build_found;

static int build_load(void *to, const char *folder, const ty_cache_entry *entry, ty_error *err)
{
    const build_found *found = to;
    ty_cuda_code *code = found->code;
    *code = (ty_cuda_code){.cache_hit = true};
    for (int i = 0; i < entry->n_files; i++) {
        ty_buf bytes;
        ty_buf_init(&bytes, 1u << 30);
        int rc = ty_file_read(ty_arena_printf(found->arena, "%s/%s", folder, entry->file[i]), &bytes, err);
        if (rc == 0)
            code->object[code->n++] =
                (ty_cuda_object){.cubin = ty_arena_copy(found->arena, bytes.data, bytes.len), .bytes = bytes.len};
        ty_buf_fini(&bytes);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int build_key(const ty_ktexts *texts, const ty_cuda_build_options *opt, ty_cached *c, ty_error *err)
{
    char hex[TY_SHA256_HEX_BYTES];
    if (ty_ktexts_hash(texts, &ty_cuda_words, hex, err) < 0)
        return -1;
    ty_cache_key_add(&c->key, c->arena, true, "version of trainyard", TY_VERSION);
    ty_cache_key_add(&c->key, c->arena, true, "CUDA compiler", ty_cuda_compiler(c->arena));
    ty_cache_key_add(&c->key, c->arena, true, "architecture", ty_arena_printf(c->arena, "sm_%d", opt->capability));
    for (int i = 0; i < opt->n_facts; i++)
        ty_cache_key_add(&c->key, c->arena, false, opt->fact[i].name, opt->fact[i].value);
    ty_cache_key_add(&c->key, c->arena, true, "kernels", hex);
    return ty_cache_key_hex(&c->key, c->hex, err);
}

static void build_keep(ty_cached *c, const ty_cuda_code *code)
{
    ty_cache_objects objects = {.suffix = ".cubin", .n = code->n};
    for (int i = 0; i < code->n; i++) {
        objects.bytes[i] = code->object[i].cubin;
        objects.n_bytes[i] = code->object[i].bytes;
    }
    ty_cached_keep(c, &objects);
}

static ty_cached build_cache(const ty_cuda_build_options *opt, ty_arena *a)
{
    return (ty_cached){
        .arena = a, .dirs = opt->cache_dir, .max_bytes = opt->cache_max_bytes, .note = opt->note, .lock = -1};
}

static int build_cached(const ty_ktexts *texts, const ty_cuda_build_options *opt, ty_arena *a, ty_cuda_code *out,
                        ty_error *err)
{
    ty_cached c = build_cache(opt, a);
    build_found found = {a, out};
    if (build_key(texts, opt, &c, err) < 0)
        return -1;
    int rc = 0;
    if (!ty_cached_find(&c, build_load, &found)) {
        *out = (ty_cuda_code){.n = 0};
        rc = build_compile(texts, opt, a, out, err);
        if (rc == 0)
            build_keep(&c, out);
    }
    ty_cached_end(&c);
    return rc;
}

int ty_cuda_build(ty_ktexts *texts, const ty_cuda_build_options *opt, ty_arena *a, ty_cuda_code *out, ty_error *err)
{
    const ty_nvrtc *lib;
    *out = (ty_cuda_code){.n = 0};
    if (texts->n == 0)
        return 0;
    if (ty_nvrtc_get(&lib, err) < 0) /* here, since opening is not for several threads */
        return -1;
    ty_ktexts_sort(texts);
    return opt->cache_dir && opt->cache_dir[strspn(opt->cache_dir, ":")] ? build_cached(texts, opt, a, out, err)
                                                                         : build_compile(texts, opt, a, out, err);
}

int ty_cuda_is_built(ty_ktexts *texts, const ty_cuda_build_options *opt, ty_arena *a, bool *found, ty_error *err)
{
    ty_cached c = build_cache(opt, a);
    const ty_nvrtc *lib;
    *found = false;
    ty_ktexts_sort(texts);
    if (texts->n == 0 || ty_nvrtc_get(&lib, NULL) < 0)
        return 0;
    if (build_key(texts, opt, &c, err) < 0)
        return -1;
    *found = ty_cached_is_there(&c);
    return 0;
}
