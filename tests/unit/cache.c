/* compiler/target/cache.h and objects.h: kernels kept, found, proven, explained; made once and used elsewhere. */
#define _GNU_SOURCE
#include "compiler/target/cache.h"

#include "base/entries.h"
#include "base/file.h"
#include "base/log.h"
#include "compiler/compiler.h"
#include "compiler/target/cpu/objects.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char unit_text[] = "__attribute__((visibility(\"default\"))) long ty_answer(void) { return 42; }\n";
static const char *const units[] = {unit_text};

typedef struct scratch {
    ty_arena a;
    char dir[64];
    const char *cache, *work;
} scratch;

static int set_up(void **state)
{
    scratch *s = calloc(1, sizeof *s);
    ty_arena_init(&s->a);
    strcpy(s->dir, "/tmp/ty-cache-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    s->cache = ty_arena_printf(&s->a, "%s/cache", s->dir);
    s->work = ty_arena_printf(&s->a, "%s/work", s->dir);
    assert_int_equal(mkdir(s->work, 0700), 0);
    *state = s;
    ty_log_set_level(TY_LOG_ERROR);
    return 0;
}

static int tear_down(void **state)
{
    scratch *s = *state;
    ty_file_remove_tree(s->dir, NULL);
    ty_arena_fini(&s->a);
    free(s);
    return 0;
}

static ty_objects_options options_of(const scratch *s, const char *cc)
{
    return (ty_objects_options){.cc = {cc, s->work}, .cache_dir = s->cache, .kernels = "1234"};
}

static int run_objects(const ty_objects_options *opt, bool *hit, ty_error *err)
{
    ty_objects_job *job = NULL;
    ty_objects o = {.n = 0};
    *err = (ty_error){0};
    if (ty_objects_start(units, 1, opt, &job, err) < 0 || ty_objects_finish(job, &o, err) < 0)
        return -1;
    long (*answer)(void);
    void *found = ty_objects_symbol(&o, "ty_answer");
    assert_non_null(found);
    memcpy(&answer, &found, sizeof found);
    assert_int_equal(answer(), 42);
    assert_null(ty_objects_symbol(&o, "ty_question"));
    *hit = o.cache_hit;
    ty_objects_close(&o);
    return 0;
}

static void expect_run(const ty_objects_options *opt, bool expected_hit)
{
    ty_error err;
    bool hit;
    if (run_objects(opt, &hit, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(hit, expected_hit);
}

/* The only entry. */
static const char *entry_of(scratch *s)
{
    ty_file_entry *file;
    size_t n;
    assert_int_equal(ty_file_list(s->cache, &s->a, &file, &n, NULL), 0);
    assert_int_equal(n, 1); /* no lock and no work folder is left */
    return ty_arena_printf(&s->a, "%s/%s", s->cache, file[0].name);
}

static void append(scratch *s, const char *folder, const char *name, const char *text)
{
    FILE *f = fopen(ty_arena_printf(&s->a, "%s/%s", folder, name), "a");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* ---- keys ---- */

static void key_fields(void **state)
{
    scratch *s = *state;
    char hex[4][TY_CACHE_HEX_BYTES];
    for (int i = 0; i < 4; i++) {
        ty_cache_key key = {.n = 0};
        ty_cache_key_add(&key, &s->a, true, "C compiler", i == 1 ? "clang" : "gcc");
        ty_cache_key_add(&key, &s->a, false, "inputs", i == 2 ? "x f32[2]" : "x f32[1]");
        ty_cache_key_add(&key, &s->a, true, "kernels", i == 3 ? "b" : "a");
        assert_int_equal(ty_cache_key_hex(&key, hex[i], NULL), 0);
    }
    assert_string_not_equal(hex[0], hex[1]);
    assert_string_equal(hex[0], hex[2]); /* a fact decides nothing */
    assert_string_not_equal(hex[0], hex[3]);
}

static void machine_decides(void **state)
{
    scratch *s = *state;
    ty_cache_key key = {.n = 0}, other = {.n = 0};
    ty_cache_key_add_machine(&key, &s->a, "cc");
    ty_cache_key_add_machine(&other, &s->a, "/nonexistent/cc");
    assert_string_not_equal(ty_cache_key_value(&key, "processor features"), "");
    assert_string_not_equal(ty_cache_key_value(&key, "processor"), "");
    assert_null(strstr(ty_cache_key_value(&key, "C compiler"), "not found"));
    assert_non_null(strstr(ty_cache_key_value(&other, "C compiler"), "not found"));
    assert_non_null(ty_cache_key_value(&key, "version of trainyard"));
}

static void differences_in_words(void **state)
{
    static const struct {
        const char *name, *then, *now, *words;
    } rows[] = {
        {"inputs", "x f32[64,784]", "x f32[128,784]", "inputs: then x f32[64,784], now x f32[128,784]"},
        {"C compiler", "/usr/bin/gcc-12, 9 bytes", "/usr/bin/gcc-13, 9 bytes",
         "C compiler: then /usr/bin/gcc-12, 9 bytes, now /usr/bin/gcc-13, 9 bytes"},
        {"processor features", "fpu avx avx512f", "fpu avx amx", "processor features: then also avx512f now also amx"},
        {"kernels", "aa", "bb", "the step itself: layers, loss, optimizer or their settings"},
        {"threads", "2", "2", ""},
    };
    scratch *s = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_cache_key then = {.n = 0}, now = {.n = 0};
        ty_buf out;
        ty_buf_init(&out, 1 << 16);
        ty_cache_key_add(&then, &s->a, true, rows[i].name, rows[i].then);
        ty_cache_key_add(&now, &s->a, true, rows[i].name, rows[i].now);
        assert_int_equal(ty_cache_difference(&then, &now, TY_CACHE_ALL, &out), rows[i].words[0] != 0);
        assert_string_equal(out.len ? out.data : "", rows[i].words);
        ty_buf_fini(&out);
    }
}

/* ---- hits and misses ---- */

static void found_again_without_a_compiler(void **state)
{
    scratch *s = *state;
    ty_objects_options opt = options_of(s, "cc");
    bool found;
    expect_run(&opt, false);
    opt.cc.work_dir = "/nonexistent"; /* nothing is compiled: it is not needed */
    expect_run(&opt, true);
    assert_int_equal(ty_objects_find(&opt, &found, NULL), 0);
    assert_true(found);
    opt.kernels = "5678";
    assert_int_equal(ty_objects_find(&opt, &found, NULL), 0);
    assert_false(found);
    struct stat st;
    assert_int_equal(stat(entry_of(s), &st), 0);
    assert_int_equal(st.st_mode & 022, 0); /* code: nobody else may write it */
}

static void damage_is_found(void **state)
{
    static const char *const files[] = {"k0.so", "entry.txt"};
    scratch *s = *state;
    ty_objects_options opt = options_of(s, "cc");
    expect_run(&opt, false);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        append(s, entry_of(s), files[i], "damage");
        expect_run(&opt, false);
        expect_run(&opt, true);
    }
    assert_int_equal(unlink(ty_arena_printf(&s->a, "%s/k0.so", entry_of(s))), 0);
    expect_run(&opt, false);
    expect_run(&opt, true);
}

/* Every byte of a description replaced by what may hurt a reader: it is read or refused, and what it names stays plain.
 */
static void any_description_is_read_or_refused(void **state)
{
    static const char bad[] = {'\t', '\n', '\0', '/', (char)0xFF};
    scratch *s = *state;
    ty_objects_options opt = options_of(s, "cc");
    ty_buf text;
    int n_refused = 0;
    expect_run(&opt, false);
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_file_read(ty_arena_printf(&s->a, "%s/entry.txt", entry_of(s)), &text, NULL), 0);
    const char *path = ty_arena_printf(&s->a, "%s/entry.txt", s->work);
    for (size_t i = 0; i < text.len; i += i < 64 || i + 200 > text.len ? 1 : 13)
        for (size_t k = 0; k < sizeof bad; k++) {
            ty_arena a;
            ty_cache_entry entry;
            char kept = text.data[i];
            text.data[i] = bad[k];
            FILE *f = fopen(path, "w");
            assert_non_null(f);
            fwrite(text.data, 1, text.len, f);
            fclose(f);
            text.data[i] = kept;
            ty_arena_init(&a);
            n_refused += ty_cache_read(s->work, &a, &entry, NULL) < 0;
            for (int n = 0; n < entry.n_files; n++)
                assert_null(strchr(entry.file[n], '/'));
            ty_arena_fini(&a);
        }
    assert_true(n_refused > 100);
    ty_buf_fini(&text);
}

/* A file stands where the folder should be: nobody can write there, root neither. */
static void not_to_be_written(void **state)
{
    scratch *s = *state;
    ty_objects_options opt = options_of(s, "cc");
    append(s, s->dir, "cache", "a file");
    expect_run(&opt, false);
    expect_run(&opt, false);
}

static void second_folder_is_read(void **state)
{
    scratch *s = *state;
    ty_objects_options opt = options_of(s, "cc");
    expect_run(&opt, false);
    opt.cache_dir = ty_arena_printf(&s->a, "%s/empty:%s", s->dir, s->cache);
    expect_run(&opt, true);
    assert_false(ty_file_exists(ty_arena_printf(&s->a, "%s/empty", s->dir)));
    opt.cache_dir = ty_arena_printf(&s->a, ":%s", s->cache);
    expect_run(&opt, true);
    opt.kernels = "5678"; /* nothing is written where only reading is asked for, and nothing to "" */
    expect_run(&opt, false);
    expect_run(&opt, false);
    for (int i = 0; i < 2; i++) {
        opt.cache_dir = i ? ":" : "";
        expect_run(&opt, false);
    }
    entry_of(s);
}

static void nearest_is_named(void **state)
{
    scratch *s = *state;
    ty_cache_field fact = {"inputs", "x f32[64]", false};
    ty_objects_options opt = options_of(s, "cc");
    ty_buf note;
    bool found;
    ty_buf_init(&note, 1 << 16);
    opt.fact = &fact;
    opt.n_facts = 1;
    opt.note = &note;
    expect_run(&opt, false);
    assert_non_null(strstr(note.data, "has no entry"));
    fact.value = "x f32[128]";
    opt.kernels = "5678";
    ty_buf_clear(&note);
    assert_int_equal(ty_objects_find(&opt, &found, NULL), 0);
    assert_non_null(strstr(note.data, "inputs: then x f32[64], now x f32[128]"));
    ty_buf_fini(&note);
}

/* Four processes at once: one compiles. */
static void compiled_once(void **state)
{
    scratch *s = *state;
    ty_objects_options opt = options_of(s, "cc");
    int n_hits = 0, status;
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            ty_error err;
            bool hit = false;
            int rc = run_objects(&opt, &hit, &err);
            _exit(rc < 0 ? 2 : hit);
        }
    for (int i = 0; i < 4; i++) {
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        n_hits += WEXITSTATUS(status);
    }
    assert_int_equal(n_hits, 3);
    entry_of(s);
}

static void lock_is_waited_for(void **state)
{
    scratch *s = *state;
    int lock = ty_cache_lock(s->work, "abc", 0);
    assert_true(lock >= 0);
    assert_int_equal(ty_cache_lock(s->work, "abc", 50), -1);
    int other = ty_cache_lock(s->work, "def", 0);
    assert_true(other >= 0);
    ty_cache_unlock(other, s->work, "def");
    ty_cache_unlock(lock, s->work, "abc");
    lock = ty_cache_lock(s->work, "abc", 0);
    assert_true(lock >= 0);
    ty_cache_unlock(lock, s->work, "abc");
    assert_int_equal(ty_cache_lock("/nonexistent", "abc", 50), -1);
}

static void oldest_go(void **state)
{
    scratch *s = *state;
    static const char *const kernels[] = {"a", "b", "c"};
    ty_objects_options opt = options_of(s, "cc");
    ty_cache_listed *row;
    int n;
    for (int i = 0; i < 3; i++) {
        opt.kernels = kernels[i];
        expect_run(&opt, false);
        assert_int_equal(ty_cache_list(s->cache, &s->a, &row, &n, NULL), 0);
        assert_int_equal(n, i + 1);
        struct timespec at[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        for (int k = 0; k < n; k++)
            if (row[k].used_utc_s > 2000) {
                ty_file_entry *file;
                size_t n_files;
                assert_int_equal(ty_file_list(s->cache, &s->a, &file, &n_files, NULL), 0);
                for (size_t f = 0; f < n_files; f++)
                    if (strncmp(file[f].name, row[k].name, 12) == 0)
                        utimensat(AT_FDCWD, ty_arena_printf(&s->a, "%s/%s", s->cache, file[f].name), at, 0);
            }
    }
    int64_t each = row[0].bytes;
    assert_true(each > 1000);
    opt.kernels = "a"; /* used now: "b" is the oldest */
    expect_run(&opt, true);
    opt.kernels = "d";
    opt.cache_max_bytes = 3 * each + each / 2;
    expect_run(&opt, false);
    assert_int_equal(ty_cache_list(s->cache, &s->a, &row, &n, NULL), 0);
    assert_int_equal(n, 3);
    opt.kernels = "a";
    expect_run(&opt, true);
    opt.kernels = "b";
    expect_run(&opt, false);
    opt.kernels = "e";
    opt.cache_max_bytes = 1; /* the new one stays */
    expect_run(&opt, false);
    expect_run(&opt, true);
    assert_int_equal(ty_entries_clear(s->cache, &n, NULL), 0);
    assert_int_equal(n, 1);
    expect_run(&opt, false);
}

/* ---- compiled before ---- */

static void rewrite_features(scratch *s, const char *folder)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    const char *path = ty_arena_printf(&s->a, "%s/entry.txt", folder);
    assert_int_equal(ty_file_read(path, &text, NULL), 0);
    const char *name = "processor features\t", *at = strstr(text.data, name);
    assert_non_null(at);
    size_t head = (size_t)(at - text.data) + strlen(name);
    const char *out = ty_arena_printf(&s->a, "%.*squantum %s", (int)head, text.data, text.data + head);
    assert_int_equal(ty_file_write(path, out, strlen(out), 0644, NULL), 0);
    ty_buf_fini(&text);
}

static void made_here_used_there(void **state)
{
    scratch *s = *state;
    ty_error err;
    bool hit;
    ty_cache_field fact = {"inputs", "x f32[64]", false};
    const char *folder = ty_arena_printf(&s->a, "%s/compiled", s->dir);
    ty_objects_options make = {
        .cc = {"cc", s->work}, .output_dir = folder, .kernels = "1", .fact = &fact, .n_facts = 1};
    expect_run(&make, false);
    expect_run(&make, false); /* replaced */
    ty_objects_options use = make;
    use.output_dir = NULL;
    use.compiled_dir = folder;
    use.cc = (ty_cc_options){"/nonexistent/cc", "/nonexistent"};
    expect_run(&use, true);
    fact.value = "x f32[128]";
    use.kernels = "2";
    assert_int_equal(run_objects(&use, &hit, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILED);
    assert_non_null(strstr(err.message, "inputs: then x f32[64], now x f32[128]"));
    use.kernels = "1";
    rewrite_features(s, folder);
    assert_int_equal(run_objects(&use, &hit, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILED);
    assert_non_null(strstr(err.message, "lacks"));
    assert_non_null(strstr(err.message, "quantum"));
    expect_run(&make, false);
    append(s, folder, "k0.so", "damage");
    assert_int_equal(run_objects(&use, &hit, &err), -1);
    assert_int_equal(err.code, TY_E_COMPILED);
    assert_non_null(strstr(err.message, "k0.so"));
    use.compiled_dir = "/nonexistent";
    assert_int_equal(run_objects(&use, &hit, &err), -1);
}

/* Somebody's own folder is not overwritten. */
static void foreign_folder_stays(void **state)
{
    scratch *s = *state;
    ty_error err;
    bool hit;
    append(s, s->work, "precious", "text");
    ty_objects_options make = {.cc = {"cc", s->dir}, .output_dir = s->work, .kernels = "1"};
    assert_int_equal(run_objects(&make, &hit, &err), -1);
    assert_true(ty_file_exists(ty_arena_printf(&s->a, "%s/precious", s->work)));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(key_fields),           TEST(machine_decides),
        TEST(differences_in_words), TEST(found_again_without_a_compiler),
        TEST(damage_is_found),      TEST(any_description_is_read_or_refused),
        TEST(not_to_be_written),    TEST(second_folder_is_read),
        TEST(nearest_is_named),     TEST(compiled_once),
        TEST(lock_is_waited_for),   TEST(oldest_go),
        TEST(made_here_used_there), TEST(foreign_folder_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
