/* Checkpoints: what is saved comes back, what is damaged is found, and no failure costs an older one. */
#define _GNU_SOURCE /* mount, unshare */
#include "checkpoint_case.h"

#include "base/hash.h"
#include "container/output/rankfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t n_listed(const ty_checkpoints *c)
{
    ty_error err;
    ty_arena arena;
    ty_checkpoint_entry *list;
    size_t n;
    ty_arena_init(&arena);
    assert_ok(ty_checkpoints_list(c->dir, &arena, &list, &n, &err));
    ty_arena_fini(&arena);
    return n;
}

static void test_round_trip(void **state)
{
    ty_checkpoints c = checkpoints(state);
    restore(&c, -1, 0);
    save(&c, 1200);
    assert_true(ty_file_exists(in(state, "checkpoints/step-00001200/rank-00000.bin")));
    assert_true(ty_file_exists(in(state, "checkpoints/step-00001200/MANIFEST.json")));
    restore(&c, 1200, 0);
    save(&c, 1300);
    restore(&c, 1300, 0);
    save(&c, 123456789012); /* beyond eight digits it still sorts by number */
    restore(&c, 123456789012, 0);
}

/* The layout that rankfile.h promises. */
static void test_layout(void **state)
{
    ty_checkpoints c = checkpoints(state);
    save(&c, 7);
    size_t n;
    char *bytes = get_file(in(state, "checkpoints/step-00000007/rank-00000.bin"), &n);
    struct model *m = model_new(7);
    uint32_t word;
    uint64_t offset, n_bytes;
    assert_memory_equal(bytes, "TYRANK\r\n\1\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\7\0\0\0\0\0\0\0", 32);
    memcpy(&n_bytes, bytes + 40, 8);
    assert_int_equal(n_bytes, n);
    memcpy(&word, bytes + 60, 4);
    assert_int_equal(word, ty_crc32c(0, bytes, 60));
    memcpy(&offset, bytes + 64, 8);
    memcpy(&n_bytes, bytes + 72, 8);
    assert_int_equal(offset % 64, 0);
    assert_int_equal(n_bytes, sizeof m->w);
    assert_string_equal(bytes + 80, "f32");
    memcpy(&word, bytes + 88, 4);
    assert_int_equal(word, ty_crc32c(0, m->w, sizeof m->w));
    assert_memory_equal(bytes + offset, m->w, sizeof m->w);
    assert_int_equal(n, ty_rankfile_bytes(m->tensors, 4));
    free(m);
    free(bytes);
}

/* Whatever byte is changed, and wherever a file is cut, the checkpoint before is taken. */
static void damage_everywhere(void **state, const char *name, bool every_bit)
{
    ty_checkpoints c = checkpoints(state);
    save(&c, 10);
    save(&c, 20);
    char path[1024];
    snprintf(path, sizeof path, "%s", in(state, name));
    size_t n;
    char *good = get_file(path, &n), *bad = malloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit += every_bit ? 1 : 5) {
            memcpy(bad, good, n);
            bad[i] ^= (char)(1 << bit);
            put_file(path, bad, n);
            restore(&c, 10, 1);
        }
        put_file(path, good, i);
        restore(&c, 10, 1);
    }
    memcpy(bad, good, n);
    bad[n] = '\n';
    put_file(path, bad, n + 1);
    restore(&c, 10, 1);
    put_file(path, good, n);
    restore(&c, 20, 0);
    assert_int_equal(unlink(path), 0);
    restore(&c, 10, 1);
    free(good);
    free(bad);
}

static void test_manifest_damage(void **state)
{
    damage_everywhere(state, "checkpoints/step-00000020/MANIFEST.json", true);
}

/* The text with its last line anew, as a writer of it would have made it. */
static int parse_signed(const char *text, ty_manifest *m, ty_error *err)
{
    static ty_arena arena;
    char whole[2048], hex[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    assert_int_equal(ty_sha256_bytes(text, strlen(text), digest, NULL), 0);
    int n = snprintf(whole, sizeof whole, "%s  \"sha256\": \"%s\"\n}\n", text, ty_sha256_hex(digest, hex));
    ty_arena_init(&arena);
    *err = (ty_error){0};
    int rc = ty_manifest_parse(whole, (size_t)n, "MANIFEST.json", &arena, m, err);
    ty_arena_fini(&arena);
    return rc;
}

/* Version 1, of checkpoints from before 24 November 2026, does not say what the run was. */
static void test_manifest_versions(void **state)
{
    (void)state;
#define MANIFEST(version, run)                                                                                        \
    "{\n  \"format\": \"trainyard-checkpoint\",\n  \"version\": " version ",\n  \"step\": 7,\n  \"world_size\": 1,\n" \
    "  \"position\": {\"epoch\": 3, \"batch\": 17, \"seed\": \"5\", \"rng\": \"0\"},\n  \"plan_hash\": \"abc\",\n"    \
    "  \"recipe_hash\": \"\",\n" run                                                                                  \
    "  \"files\": [\n    {\"name\": \"rank-00000.bin\", \"bytes\": 4096, \"sha256\": "                                \
    "\"abababababababababababababababababababababababababababababababab\"}\n  ],\n"
    static const struct {
        const char *text, *run, *refused;
    } rows[] = {
        {MANIFEST("1", ""), "", NULL},
        {MANIFEST("2", "  \"run\": \"seed 5, batch_size 8\",\n"), "seed 5, batch_size 8", NULL},
        {MANIFEST("1", "  \"run\": \"seed 5\",\n"), NULL, "\"run\" from version 2 on, found one"},
        {MANIFEST("2", ""), NULL, "\"run\" from version 2 on, found none"},
        {MANIFEST("2", "  \"run\": \"seed\\n5\",\n"), NULL, "expected plain text"},
        {MANIFEST("3", "  \"run\": \"seed 5\",\n"), NULL, "expected version 1 to 2, found 3"},
    };
#undef MANIFEST
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_manifest m;
        ty_error err;
        int rc = parse_signed(rows[i].text, &m, &err);
        if (rc != (rows[i].refused ? -1 : 0) || (rows[i].refused && !strstr(err.message, rows[i].refused)))
            fail_msg("row %zu: %d, %s", i, rc, err.message);
        if (rc == 0)
            assert_string_equal(m.state.run, rows[i].run);
    }
}

static void test_rank_damage(void **state)
{
    damage_everywhere(state, "checkpoints/step-00000020/rank-00000.bin", false);
}

/* The reason is exact enough to be acted on. */
static void test_reasons(void **state)
{
    ty_error err;
    ty_arena arena;
    ty_checkpoint_restored r;
    ty_checkpoints c = checkpoints(state);
    struct model *m = model_new(0);
    ty_arena_init(&arena);
    save(&c, 1);
    save(&c, 2);
    save(&c, 3);
    const char *rank3 = in(state, "checkpoints/step-00000003/rank-00000.bin");
    assert_int_equal(truncate(rank3, 100), 0);
    size_t n;
    char *bytes = get_file(in(state, "checkpoints/step-00000002/rank-00000.bin"), &n);
    bytes[n - 1] ^= 1;
    put_file(in(state, "checkpoints/step-00000002/rank-00000.bin"), bytes, n);
    free(bytes);
    mkdir(in(state, "checkpoints/step-00000004"), 0755);
    put_file(in(state, "checkpoints/step-5"), "", 0);
    mkdir(in(state, "checkpoints/step-000000006"), 0755); /* nine digits with a zero in front: none of ours */
    assert_ok(ty_checkpoint_restore(&c, m->tensors, 4, &arena, &r, &err));
    assert_int_equal(r.state.step, 1);
    assert_int_equal(r.skipped.n_lines, 3);
    assert_string_equal(r.skipped.lines[0], "step-00000004: it has no MANIFEST.json, so it was never completed");
    assert_string_equal(r.skipped.lines[1], "step-00000003: rank-00000.bin: expected 456 bytes, found 100");
    int64_t two = 2;
    uint32_t crc = ty_crc32c(0, &two, sizeof two);
    two ^= (int64_t)1 << 56;
    char expected[256];
    snprintf(expected, sizeof expected,
             "step-00000002: rank-00000.bin: tensor \"n\": CRC-32C differs, expected %08x, found %08x", crc,
             ty_crc32c(0, &two, sizeof two));
    assert_string_equal(r.skipped.lines[2], expected);
    free(m);
    ty_arena_fini(&arena);
}

static void test_none_valid(void **state)
{
    ty_error err;
    ty_arena arena;
    ty_checkpoint_restored r;
    ty_checkpoints c = checkpoints(state);
    struct model *m = model_new(0);
    ty_arena_init(&arena);
    mkdir(in(state, "checkpoints/step-00000001"), 0755);
    restore(&c, -1, 1); /* killed within its first save: nothing was ever acknowledged */
    save(&c, 2);
    assert_int_equal(truncate(in(state, "checkpoints/step-00000002/rank-00000.bin"), 100), 0);
    assert_error(ty_checkpoint_restore(&c, m->tensors, 4, &arena, &r, &err), TY_E_CHECKPOINT,
                 "none of the 2 checkpoints");
    assert_non_null(strstr(err.detail, "expected 456 bytes, found 100"));
    free(m);
    ty_arena_fini(&arena);
}

static void mismatch(const ty_checkpoints *c, const ty_named_tensor *tensors, size_t n, const char *text)
{
    ty_error err;
    ty_arena arena;
    ty_checkpoint_restored r;
    ty_arena_init(&arena);
    assert_error(ty_checkpoint_restore(c, tensors, n, &arena, &r, &err), TY_E_CHECKPOINT, text);
    assert_non_null(strstr(err.message, "step-00000002"));
    assert_false(r.found);
    ty_arena_fini(&arena);
}

/* A whole checkpoint of another model is an error, not a reason to take an older one, and leaves the model alone. */
static void test_mismatch(void **state)
{
    ty_checkpoints c = checkpoints(state);
    save(&c, 1);
    save(&c, 2);
    struct model *m = model_new(9), *same = model_new(9);
    ty_named_tensor t[5];
    memcpy(t, m->tensors, sizeof m->tensors);
    mismatch(&c, t, 3, "tensor \"n\" of the checkpoint is not in the model");
    t[4] = (ty_named_tensor){"more", ty_type_scalar(TY_I64), &m->n};
    mismatch(&c, t, 5, "tensor \"more\" of the model is not in the checkpoint");
    t[0].type = ty_type_make(TY_F32, 2, (int64_t[]){3, 4});
    mismatch(&c, t, 4, "tensor \"layer/w\" is f32[4,3] in the checkpoint, f32[3,4] in the model");
    t[0].type = ty_type_make(TY_I32, 2, (int64_t[]){4, 3});
    mismatch(&c, t, 4, "tensor \"layer/w\" is f32[4,3] in the checkpoint, i32[4,3] in the model");
    assert_memory_equal(m->w, same->w, sizeof m->w);
    assert_int_equal(m->n, 9);
    /* The same tensors in another order are the same model. */
    ty_error err;
    ty_arena arena;
    ty_checkpoint_restored r;
    ty_arena_init(&arena);
    for (int i = 0; i < 4; i++)
        t[i] = m->tensors[3 - i];
    assert_ok(ty_checkpoint_restore(&c, t, 4, &arena, &r, &err));
    assert_int_equal(m->n, 2);
    ty_arena_fini(&arena);
    free(m);
    free(same);
}

static void test_retention(void **state)
{
    ty_checkpoints c = checkpoints(state);
    for (int64_t step = 1; step <= 6; step++)
        save(&c, step);
    assert_int_equal(n_listed(&c), 3);
    assert_false(ty_file_exists(in(state, "checkpoints/step-00000003")));
    restore(&c, 6, 0);
    /* A later one that is damaged must not push out good ones. */
    c.keep = 1;
    assert_int_equal(truncate(in(state, "checkpoints/step-00000006/rank-00000.bin"), 1), 0);
    save(&c, 5);
    restore(&c, 5, 1);
    c.keep = 0;
    for (int64_t step = 7; step <= 12; step++)
        save(&c, step);
    assert_int_equal(n_listed(&c), 8);
}

/* One stays beside the newest, and can be asked for. */
static void test_one_that_stays(void **state)
{
    ty_checkpoints c = checkpoints(state);
    ty_checkpoint_restored r;
    ty_error err = {0};
    ty_arena arena;
    c.also = 2;
    for (int64_t step = 1; step <= 6; step++)
        save(&c, step);
    assert_int_equal(n_listed(&c), 4);
    restore(&c, 6, 0);
    c.only = 2;
    restore(&c, 2, 0);
    c.only = 3;
    ty_arena_init(&arena);
    assert_ok(ty_checkpoint_restore(&c, NULL, 0, &arena, &r, &err));
    assert_false(r.found);
    ty_arena_fini(&arena);
    c.only = c.also = 0;
    save(&c, 7);
    assert_int_equal(n_listed(&c), 3);
    assert_false(ty_file_exists(in(state, "checkpoints/step-00000002")));
}

/* Saving the step that stands there already: the same content is left alone, other content replaces it. */
static void test_same_step_again(void **state)
{
    ty_error err;
    struct stat before, after;
    ty_checkpoints c = checkpoints(state);
    const char *file = in(state, "checkpoints/step-00000005/rank-00000.bin");
    save(&c, 5);
    assert_int_equal(stat(file, &before), 0);
    save(&c, 5);
    assert_int_equal(stat(file, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    restore(&c, 5, 0);
    struct model *m = model_new(8);
    const ty_train_state s = state_at(5);
    assert_ok(ty_checkpoint_save(&c, &s, m->tensors, 4, &err));
    free(m);
    /* Damaged data under a whole header are noticed, and written anew. */
    size_t n;
    char *bytes = get_file(file, &n);
    bytes[n - 1] ^= 1;
    put_file(file, bytes, n);
    free(bytes);
    save(&c, 5);
    restore(&c, 5, 0);
}

static void test_tidy(void **state)
{
    ty_error err;
    ty_arena arena;
    ty_checkpoint_notes notes;
    ty_checkpoints c = checkpoints(state);
    ty_arena_init(&arena);
    save(&c, 1);
    put_file(in(state, "checkpoints/.probe.tmp-12-0"), "", 0);
    put_file(in(state, "checkpoints/step-00000001/.rank-00000.bin.tmp-12-3"), "half", 4);
    put_file(in(state, "checkpoints/step-00000001/theirs"), "x", 1);
    put_file(in(state, "checkpoints/notes.txt"), "mine", 4);
    mkdir(in(state, "checkpoints/step-00000002"), 0755);
    put_file(in(state, "checkpoints/step-00000002/rank-00000.bin"), "half", 4);
    put_file(in(state, "checkpoints/step-00000002/.MANIFEST.json.tmp-12-3"), "half", 4);
    assert_ok(ty_checkpoints_tidy(&c, &arena, &notes, &err));
    assert_int_equal(notes.n_lines, 3);
    assert_false(ty_file_exists(in(state, "checkpoints/.probe.tmp-12-0")));
    assert_false(ty_file_exists(in(state, "checkpoints/step-00000001/.rank-00000.bin.tmp-12-3")));
    assert_false(ty_file_exists(in(state, "checkpoints/step-00000002")));
    assert_true(ty_file_exists(in(state, "checkpoints/step-00000001/theirs")));
    assert_true(ty_file_exists(in(state, "checkpoints/notes.txt")));
    restore(&c, 1, 0);
    assert_ok(ty_checkpoints_tidy(&c, &arena, &notes, &err));
    assert_int_equal(notes.n_lines, 0);
    ty_arena_fini(&arena);
}

static void test_policy(void **state)
{
    ty_error err;
    ty_checkpoints c = checkpoints(state);
    struct model *m = model_new(1);
    const ty_train_state s = state_at(2);
    save(&c, 1);
    put_file(in(state, "checkpoints/step-00000002"), "in the way", 10);
    assert_int_equal(ty_checkpoint_save(&c, &s, m->tensors, 4, &err), -1);
    assert_false(ty_checkpoints_must_stop(&c));
    assert_int_equal(ty_checkpoint_save(&c, &s, m->tensors, 4, &err), -1);
    assert_true(ty_checkpoints_must_stop(&c));
    save(&c, 3);
    assert_false(ty_checkpoints_must_stop(&c));
    c.on_error = TY_CHECKPOINT_STOP;
    assert_int_equal(ty_checkpoint_save(&c, &s, m->tensors, 4, &err), -1);
    assert_true(ty_checkpoints_must_stop(&c));
    restore(&c, 3, 0);
    free(m);
}

/* What the child finds wrong is its exit status; 77: this machine does not let us try. */
static void in_child(void (*body)(void **), void **state)
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(state);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: this user may not do what the test needs (root)\n");
        skip();
    }
    assert_int_equal(status, 0);
}

#define child_must(cond)                                               \
    do {                                                               \
        if (!(cond)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
            _exit(1);                                                  \
        }                                                              \
    } while (0)

static void full_disk_body(void **state)
{
    ty_error err = {0};
    const char *disk = in(state, "disk");
    mkdir(disk, 0755);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=1m") < 0)
        _exit(77);
    static float big[160 << 10]; /* 640 KiB: one fits, two do not */
    const ty_named_tensor t = {"big", ty_type_make(TY_F32, 1, (int64_t[]){160 << 10}), big};
    ty_checkpoints c = {.dir = in(state, "disk/checkpoints"), .keep = 1};
    const ty_train_state s1 = state_at(1), s2 = state_at(2);
    ty_arena arena;
    ty_arena_init(&arena);
    ty_checkpoint_restored r;
    ty_checkpoint_notes notes;
    bool ok = ty_checkpoints_open(&c, &err) == 0 && ty_checkpoint_save(&c, &s1, &t, 1, &err) == 0;
    bool failed = ok && ty_checkpoint_save(&c, &s2, &t, 1, &err) == -1;
    bool kept = failed && ty_checkpoint_restore(&c, &t, 1, &arena, &r, &(ty_error){0}) == 0 && r.state.step == 1 &&
                r.skipped.n_lines == 0;
    bool clean = kept && ty_checkpoints_tidy(&c, &arena, &notes, NULL) == 0 && notes.n_lines == 0;
    ty_arena_fini(&arena);
    umount(disk);
    child_must(ok && failed && kept && clean);
    child_must(err.code == TY_E_NO_SPACE);
    child_must(strstr(err.message, "checkpoint at step 2: rank-00000.bin: 655") && strstr(err.message, " free: "));
}

static void test_full_disk(void **state)
{
    in_child(full_disk_body, state);
}

static void no_inodes_body(void **state)
{
    ty_error err = {0};
    const char *disk = in(state, "disk");
    mkdir(disk, 0755);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=1m,nr_inodes=5") < 0)
        _exit(77);
    struct model *m = model_new(1);
    ty_checkpoints c = {.dir = disk, .keep = 1};
    const ty_train_state s1 = state_at(1), s2 = state_at(2);
    /* Root, folder, two files: four of five. */
    bool ok = ty_checkpoint_save(&c, &s1, m->tensors, 4, &err) == 0;
    bool failed = ok && ty_checkpoint_save(&c, &s2, m->tensors, 4, &err) == -1;
    ty_arena arena;
    ty_arena_init(&arena);
    ty_checkpoint_restored r;
    bool kept = failed && ty_checkpoint_restore(&c, m->tensors, 4, &arena, &r, &(ty_error){0}) == 0 &&
                r.state.step == 1 && r.skipped.n_lines == 0;
    ty_arena_fini(&arena);
    umount(disk);
    free(m);
    child_must(ok && failed && kept);
    child_must(err.code == TY_E_NO_SPACE);
}

static void test_no_inodes(void **state)
{
    in_child(no_inodes_body, state);
}

static void forbidden_body(void **state)
{
    ty_error err = {0};
    struct model *m = model_new(2);
    if (setgid(65534) < 0 || setuid(65534) < 0)
        _exit(77);
    ty_checkpoints c = {.dir = in(state, "checkpoints"), .keep = 1};
    const ty_train_state s = state_at(2);
    child_must(ty_checkpoints_open(&c, &err) == -1 && err.code == TY_E_PERMISSION);
    child_must(ty_checkpoint_save(&c, &s, m->tensors, 4, &err) == -1 && err.code == TY_E_PERMISSION);
    free(m);
    restore(&c, 1, 0); /* reading is allowed */
}

static void test_forbidden(void **state)
{
    ty_checkpoints c = checkpoints(state);
    save(&c, 1);
    chmod(*state, 0755);
    in_child(forbidden_body, state);
}

/* A name that is no plain file is refused, not followed or waited for. */
static void test_odd_files(void **state)
{
    ty_checkpoints c = checkpoints(state);
    save(&c, 1);
    save(&c, 2);
    const char *file = in(state, "checkpoints/step-00000002/rank-00000.bin");
    const char *manifest = in(state, "checkpoints/step-00000002/MANIFEST.json");
    unlink(file);
    assert_int_equal(mkfifo(file, 0644), 0);
    restore(&c, 1, 1);
    unlink(file);
    assert_int_equal(symlink(in(state, "checkpoints/step-00000001/rank-00000.bin"), file), 0);
    restore(&c, 1, 1);
    unlink(manifest);
    assert_int_equal(mkdir(manifest, 0755), 0);
    restore(&c, 1, 1);
    rmdir(manifest);
    assert_int_equal(mkfifo(manifest, 0644), 0);
    restore(&c, 1, 1);
    /* A whole folder under another step's name is not that step. */
    ty_file_remove_tree(in(state, "checkpoints/step-00000002"), NULL);
    assert_int_equal(rename(in(state, "checkpoints/step-00000001"), in(state, "checkpoints/step-00000003")), 0);
    save(&c, 2);
    restore(&c, 2, 1);
}

/* A rank file made by somebody who knows the checksums: it may be refused or read, and nothing worse. */
static void test_forged_index(void **state)
{
    ty_checkpoints c = checkpoints(state);
    save(&c, 1);
    char dir[1024], path[1100];
    snprintf(dir, sizeof dir, "%s/step-00000001", c.dir);
    snprintf(path, sizeof path, "%s/rank-00000.bin", dir);
    size_t n, n_read = 0;
    char *good = get_file(path, &n), *bad = malloc(n);
    uint64_t index_bytes;
    memcpy(&index_bytes, good + 32, 8);
    struct model *m = model_new(0);
    for (size_t bit = 0; bit < 8 * (64 + index_bytes); bit++) {
        const ty_rankfile_id id = {.world_size = 1, .step = 1};
        ty_manifest_file line = {.name = "rank-00000.bin", .n_bytes = n};
        uint8_t digest[TY_SHA256_BYTES];
        memcpy(bad, good, n);
        bad[bit / 8] ^= (char)(1 << bit % 8);
        uint32_t crc = ty_crc32c(0, bad + 64, index_bytes);
        memcpy(bad + 48, &crc, 4);
        crc = ty_crc32c(0, bad, 60);
        memcpy(bad + 60, &crc, 4);
        ty_error err = {0};
        assert_ok(ty_sha256_bytes(bad, n, digest, &err));
        ty_sha256_hex(digest, line.sha256);
        put_file(path, bad, n);
        ty_rankfile_fault fault;
        int rc = ty_rankfile_read(dir, &id, &line, m->tensors, 4, &fault, &err);
        assert_int_equal(rc == 0, fault == TY_RANKFILE_FINE);
        n_read += rc == 0;
    }
    /* Only what says nothing: 64 reserved bits, the two checksums that are set right again, padding. */
    assert_in_range(n_read, 64 + 64, 64 + 64 + 8 * 7 * 4 + 8 * 8);
    free(m);
    free(good);
    free(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_round_trip),      SCRATCH_TEST(test_layout),
        SCRATCH_TEST(test_manifest_damage), SCRATCH_TEST(test_manifest_versions),
        SCRATCH_TEST(test_rank_damage),     SCRATCH_TEST(test_reasons),
        SCRATCH_TEST(test_none_valid),      SCRATCH_TEST(test_mismatch),
        SCRATCH_TEST(test_retention),       SCRATCH_TEST(test_one_that_stays),
        SCRATCH_TEST(test_same_step_again), SCRATCH_TEST(test_tidy),
        SCRATCH_TEST(test_policy),          SCRATCH_TEST(test_full_disk),
        SCRATCH_TEST(test_no_inodes),       SCRATCH_TEST(test_forbidden),
        SCRATCH_TEST(test_odd_files),       SCRATCH_TEST(test_forged_index),
    };
    return cmocka_run_group_tests_name("output: checkpoints", tests, NULL, NULL);
}
