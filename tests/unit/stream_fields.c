/* stream_fields.c - fields of streams: what has to be learnt, texts, crosses, widths, formats that nobody names. A
 * stream of files must give what a data set of the same files gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "container/input/prefetch.h"
#include "container/input/stream/source.h"
#include "container/input/stream/stream.h"
#include "input_files.h"

#include <fcntl.h>
#include <pthread.h>

enum { N_ROWS = 37, MOST_FIELDS = 5 };

/* ---- data ---- */

static const char *const colors[] = {"red", "green", "\"blue, \"\"dark\"\"\"", "", " red "};
static const char *const json_colors[] = {"\"red\"", "\"green\"", "\"blue, \\\"dark\\\"\"", "null", "\"red\""};

static void put_table(bool json)
{
    for (int f = 0; f < 2; f++) {
        ty_buf b;
        char name[64];
        ty_buf_init(&b, 1 << 16);
        for (int i = f * 20; i < (f ? N_ROWS : 20); i++) {
            if (json)
                ty_buf_addf(&b, "{\"color\": %s, \"size\": %d, \"weight\": %s%d, \"label\": \"%s\"}\n",
                            json_colors[i % 5], i % 4, i % 7 ? "" : "null, \"n\": ", i, i % 3 ? "yes" : "no");
            else
                ty_buf_addf(&b, "%s,%d,", colors[i % 5], i % 4);
            if (!json && i % 7)
                ty_buf_addf(&b, "%d", i);
            if (!json)
                ty_buf_addf(&b, ",%s\n", i % 3 ? "yes" : "no");
        }
        snprintf(name, sizeof name, "table/part-%d", f);
        files_put(name, b.data, b.len);
        ty_buf_fini(&b);
    }
}

typedef struct table {
    ty_arena arena;
    ty_field field[MOST_FIELDS];
    const char *paths[1];
} table;

static void declare(table *t, int i, const char *name, const char *columns, ty_map_spec spec)
{
    ty_error err = {0};
    spec.field = name;
    spec.scale = 1;
    t->field[i] = ty_field_make(name);
    t->field[i].columns = columns;
    assert_int_equal(ty_map_new(&spec, &t->arena, &t->field[i].map, &err), 0);
}

static void declare_table(table *t)
{
    static const char *const crossed[] = {"color", "size"};
    ty_arena_init(&t->arena);
    t->paths[0] = files_path("table");
    declare(t, 0, "color", "0",
            (ty_map_spec){.way = TY_MAP_VOCABULARY, .n_oov = 1, .missing = TY_MISSING_MOST_FREQUENT});
    declare(t, 1, "size", "1", (ty_map_spec){.way = TY_MAP_HASH, .bins = 50});
    declare(t, 2, "weight", "2", (ty_map_spec){.missing = TY_MISSING_MEAN, .normalize = TY_NORMALIZE_STANDARD});
    t->field[2].missing_given = true; /* as a recipe's `missing` does */
    declare(t, 3, "label", "3", (ty_map_spec){.way = TY_MAP_CLASSES});
    declare(t, 4, "both", NULL, (ty_map_spec){.way = TY_MAP_CROSS, .bins = 1000, .cross = crossed, .n_cross = 2});
}

/* Everything that the stream gives in one epoch, beside the data set's rows. */
static void compare(ty_stream *s, const ty_dataset *ds)
{
    ty_data_feed *feed;
    ty_prefetch *p;
    const ty_batch *b;
    ty_error err = {0};
    char wanted[4096];
    int64_t n = 0;
    ty_stream_order order = {.n_rows = 8, .tail = TY_TAIL_PAD};
    assert_int_equal(s->n_fields, ds->n_fields);
    assert_int_equal(ty_stream_feed(s, &order, &feed, &err), 0);
    ty_prefetch_config c = {.feed = feed, .until_epoch = 1, .n_workers = 2};
    assert_int_equal(ty_prefetch_start(&c, &p, &err), 0);
    while (ty_prefetch_next(p, &b, &err) == 0 && b) {
        for (int64_t row = 0; row < b->n_valid; row++, n++)
            for (int i = 0; i < ds->n_fields; i++) {
                size_t each = ds->field[i].row_bytes;
                assert_true(ty_type_same(&s->field[i].type, &ds->field[i].type));
                assert_int_equal(ty_dataset_read(ds, i, &n, 1, wanted, &err), 0);
                assert_memory_equal((const char *)b->field[i].data + (size_t)row * each, wanted, each);
            }
        ty_prefetch_release(p, b);
    }
    assert_string_equal(err.message, "");
    assert_int_equal(n, ds->n_samples);
    ty_prefetch_stop(p);
    ty_data_feed_close(feed);
}

static void transforms_learn_what_a_data_set_learns(void **state)
{
    (void)state;
    for (int json = 0; json < 2; json++) {
        put_table(json);
        table a = {0}, b = {0};
        declare_table(&a);
        declare_table(&b);
        const char *format = json ? "jsonlines" : "csv";
        ty_error err = {0};
        ty_dataset *ds = NULL;
        ty_stream *s = NULL;
        ty_data_source src = {.paths = a.paths,
                              .n_paths = 1,
                              .format = format,
                              .fields = a.field,
                              .n_fields = MOST_FIELDS,
                              .csv_header = TY_CSV_HEADER_NO};
        ty_stream_config c = {
            .paths = b.paths, .n_paths = 1, .format = format, .fields = b.field, .n_fields = MOST_FIELDS};
        assert_int_equal(ty_dataset_open(&src, &ds, &err), 0);
        assert_int_equal(ty_stream_open(&c, &s, &err), 0);
        for (int i = 0; i < MOST_FIELDS; i++)
            assert_int_equal(ty_map_fingerprint(a.field[i].map), ty_map_fingerprint(b.field[i].map));
        compare(s, ds);
        ty_stream_close(s);
        ty_dataset_close(ds);
        ty_arena_fini(&a.arena);
        ty_arena_fini(&b.arena);
    }
}

static void assert_refused(const ty_stream_config *c, const char *text)
{
    ty_error err = {0};
    ty_stream *s;
    assert_int_equal(ty_stream_open(c, &s, &err), -1);
    if (!strstr(files_error(&err), text))
        fail_msg("expected \"%s\" in:\n%s", text, files_error(&err));
}

static void what_cannot_be_learnt_is_refused(void **state)
{
    (void)state;
    table t = {0};
    put_table(false);
    declare_table(&t);
    ty_stream_config c = {.channel = "train",
                          .input_folder = files_folder,
                          .state_folder = files_path("state"),
                          .format = "csv",
                          .fields = t.field,
                          .n_fields = MOST_FIELDS};
    assert_refused(&c, "field \"color\": its transform has to learn of all data, and a FIFO passes once");
    assert_refused(&c, "preprocessing: FILE");
    /* A fault in the last file shows before anything is trained. */
    files_puts("table/part-2", "red,1,x,no\n");
    c = (ty_stream_config){.paths = t.paths, .n_paths = 1, .format = "csv", .fields = t.field, .n_fields = MOST_FIELDS};
    assert_refused(&c, "table/part-2:1");
    assert_refused(&c, "expected a number in column 2, found \"x\"");
    ty_arena_fini(&t.arena);
    ty_file_remove_tree(files_path("table"), NULL);
}

/* ---- FIFOs ---- */

typedef struct writer {
    pthread_t thread;
    char path[512];
    const ty_buf *bytes;
} writer;

static void *writer_main(void *arg)
{
    const writer *w = arg;
    FILE *f = fopen(w->path, "wb"); /* waits for the reader */
    if (!f || fwrite(w->bytes->data, 1, w->bytes->len, f) != w->bytes->len || fclose(f) != 0)
        abort();
    return NULL;
}

/* The FIFO of the channel's only epoch. */
static void write_fifo(writer *w, const ty_buf *bytes)
{
    ty_file_remove_tree(files_path("fifos"), NULL);
    mkdir(files_path("fifos"), 0755);
    snprintf(w->path, sizeof w->path, "%s", files_path("fifos/train_0"));
    w->bytes = bytes;
    assert_int_equal(mkfifo(w->path, 0600), 0);
    assert_int_equal(pthread_create(&w->thread, NULL, writer_main, w), 0);
}

static ty_stream_config fifo_config(const ty_field *fields, int n_fields)
{
    static char input[512], state[512];
    snprintf(input, sizeof input, "%s", files_path("fifos"));
    snprintf(state, sizeof state, "%s", files_path("fifos/state"));
    return (ty_stream_config){.channel = "train",
                              .input_folder = input,
                              .state_folder = state,
                              .timeout_ms = 60000,
                              .fields = fields,
                              .n_fields = n_fields};
}

static void put_recordio(ty_buf *out, const char *text)
{
    uint32_t head[2] = {0xced7230a, (uint32_t)strlen(text)};
    ty_buf_add(out, head, sizeof head);
    ty_buf_add(out, text, head[1]);
    ty_buf_add(out, "\0\0\0", (4 - head[1] % 4) % 4);
}

/* Pictures of MXNet's: 4 x 4 pixels, no two alike. */
static void put_pictures(int n)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 16);
    for (int i = 0; i < n; i++) {
        struct {
            uint32_t flag;
            float label;
            uint64_t id[2];
        } header = {0, (float)(i % 3), {(uint64_t)i, 0}};
        uint32_t head[2] = {0xced7230a, sizeof header + 11 + 16};
        uint8_t pixels[17];
        for (int k = 0; k < 17; k++)
            pixels[k] = (uint8_t)(i * 16 + k);
        ty_buf_add(&b, head, sizeof head);
        ty_buf_add(&b, &header, sizeof header);
        ty_buf_add(&b, "P5 4 4 255\n", 11);
        ty_buf_add(&b, pixels, 17); /* one for padding */
    }
    files_put("pictures/a.rec", b.data, b.len);
    ty_buf_fini(&b);
}

/* Augmented as a data set augments them: by seed, epoch and number of the sample. */
static void pictures_are_augmented_by_their_number(void **state)
{
    (void)state;
    enum { N = 12 };
    const char *paths[] = {files_path("pictures")};
    ty_image_plan plan = ty_image_plan_make();
    plan.flip_across = plan.flip_down = true;
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    f[0].image = &plan;
    f[1].dtype = TY_I64;
    f[1].dtype_given = true;
    put_pictures(N);
    ty_error err = {0};
    ty_dataset *ds = NULL;
    ty_stream *s = NULL;
    ty_data_feed *feed;
    ty_prefetch *p;
    const ty_batch *b;
    float plain[N][16], x[N][16];
    int64_t y[N], all[N];
    int n_epochs = 0, n_changed = 0;
    for (int i = 0; i < N; i++)
        all[i] = i;
    ty_data_source src = {.paths = paths, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_stream_config c = {.paths = paths, .n_paths = 1, .fields = f, .n_fields = 2};
    assert_int_equal(ty_dataset_open(&src, &ds, &err), 0);
    assert_int_equal(ty_stream_open(&c, &s, &err), 0);
    assert_string_equal(s->format, "mxnet");
    assert_true(ty_type_same(&s->field[0].type, &ds->field[0].type));
    assert_int_equal(ty_dataset_read(ds, 0, all, N, plain, &err), 0);
    ty_stream_order order = {.n_rows = N, .seed = 9, .augment = true};
    assert_int_equal(ty_stream_feed(s, &order, &feed, &err), 0);
    ty_prefetch_config ring = {.feed = feed, .until_epoch = 2, .n_workers = 2};
    assert_int_equal(ty_prefetch_start(&ring, &p, &err), 0);
    for (; ty_prefetch_next(p, &b, &err) == 0 && b; n_epochs++) {
        ty_pick pick = {.sample = all, .n = N, .seed = 9, .epoch = b->at.epoch, .augment = true};
        assert_int_equal(ty_dataset_read_all(ds, &pick, (void *[]){x, y}, &err), 0);
        assert_memory_equal(b->field[0].data, x, sizeof x);
        assert_memory_equal(b->field[1].data, y, sizeof y);
        n_changed += memcmp(x, plain, sizeof x) != 0;
        ty_prefetch_release(p, b);
    }
    assert_true(n_epochs == 2 && n_changed == 2);
    ty_prefetch_stop(p);
    ty_data_feed_close(feed);
    ty_stream_close(s);
    ty_dataset_close(ds);
}

/* Of labels that are whole numbers classes are made, in a stream by the first record; a later one that is none is
 * refused, unless the type is declared. */
static void labels_of_pictures_are_classes(void **state)
{
    (void)state;
    enum { N = 150 }; /* more than types are made of */
    const char *paths[] = {files_path("pictures/a.rec")};
    ty_image_plan plan = ty_image_plan_make();
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    f[0].image = &plan;
    for (int declared = 0; declared < 2; declared++)
        for (int odd = 0; odd < 2; odd++) {
            ty_error err = {0};
            ty_stream *s = NULL;
            ty_data_feed *feed;
            ty_prefetch *p;
            const ty_batch *b;
            const float half = 0.5F;
            put_pictures(N);
            ty_stream_config c = {.paths = paths, .n_paths = 1, .fields = f, .n_fields = 2};
            f[1].dtype = TY_F32;
            f[1].dtype_given = declared;
            if (odd) {
                FILE *file = fopen(paths[0], "r+b");
                assert_true(file && fseek(file, -48L, SEEK_END) == 0);
                assert_true(fwrite(&half, sizeof half, 1, file) == 1 && fclose(file) == 0);
            }
            assert_ok(ty_stream_open(&c, &s, &err), &err);
            assert_int_equal(s->field[1].type.dtype, declared ? TY_F32 : TY_I64);
            ty_stream_order order = {.n_rows = N};
            assert_ok(ty_stream_feed(s, &order, &feed, &err), &err);
            assert_ok(ty_prefetch_start(&(ty_prefetch_config){.feed = feed, .until_epoch = 1}, &p, &err), &err);
            assert_int_equal(ty_prefetch_next(p, &b, &err), odd && !declared ? -1 : 0);
            if (odd && !declared)
                assert_says(&err, "the label 0.5 is no class");
            ty_prefetch_stop(p);
            ty_data_feed_close(feed);
            ty_stream_close(s);
        }
}

static void texts_of_a_manifest_are_fields(void **state)
{
    (void)state;
    static const char *const names[] = {"text-ref", "class"};
    static const char *const words[] = {"cat", "dog"};
    table t = {0};
    writer w;
    ty_buf bytes;
    ty_error err = {0};
    ty_stream *s;
    ty_data_feed *feed;
    ty_prefetch *p;
    const ty_batch *b;
    ty_arena_init(&t.arena);
    declare(&t, 0, "text-ref", NULL, (ty_map_spec){.way = TY_MAP_VOCABULARY, .word = words, .n_words = 2});
    declare(&t, 1, "class", NULL, (ty_map_spec){.way = TY_MAP_CLASSES, .word = words, .n_words = 2});
    ty_buf_init(&bytes, 1 << 16);
    put_recordio(&bytes, "dog");
    put_recordio(&bytes, "\"cat\"");
    put_recordio(&bytes, "cat");
    put_recordio(&bytes, "\"dog\"");
    write_fifo(&w, &bytes);
    ty_stream_config c = fifo_config(t.field, 2);
    c.attributes = names;
    c.n_attributes = 2;
    assert_int_equal(ty_stream_open(&c, &s, &err), 0);
    ty_stream_order order = {.n_rows = 2};
    assert_int_equal(ty_stream_feed(s, &order, &feed, &err), 0);
    ty_prefetch_config ring = {.feed = feed, .until_epoch = 1};
    assert_int_equal(ty_prefetch_start(&ring, &p, &err), 0);
    assert_int_equal(ty_prefetch_next(p, &b, &err), 0);
    assert_memory_equal(b->field[0].data, ((int64_t[]){1, 0}), 16);
    assert_memory_equal(b->field[1].data, ((int64_t[]){0, 1}), 16);
    ty_prefetch_release(p, b);
    ty_prefetch_stop(p);
    ty_data_feed_close(feed);
    ty_stream_close(s);
    pthread_join(w.thread, NULL);
    ty_buf_fini(&bytes);
    ty_arena_fini(&t.arena);
}

static int64_t read_guessed(const ty_field *f, int n_fields, const ty_buf *bytes, bool wrapped, const char *format)
{
    writer w;
    ty_error err = {0};
    ty_stream *s;
    ty_data_feed *feed;
    ty_prefetch *p;
    const ty_batch *b;
    int64_t n = 0;
    write_fifo(&w, bytes);
    ty_stream_config c = fifo_config(f, n_fields);
    c.wrapped = wrapped;
    if (ty_stream_open(&c, &s, &err) < 0) {
        pthread_join(w.thread, NULL);
        assert_null(format);
        assert_non_null(strstr(files_error(&err), "nor do its first bytes"));
        assert_non_null(strstr(files_error(&err), "ContentType"));
        return -1;
    }
    assert_string_equal(s->format, format);
    ty_stream_order order = {.n_rows = 2, .tail = TY_TAIL_PAD};
    assert_int_equal(ty_stream_feed(s, &order, &feed, &err), 0);
    ty_prefetch_config ring = {.feed = feed, .until_epoch = 1};
    assert_int_equal(ty_prefetch_start(&ring, &p, &err), 0);
    while (ty_prefetch_next(p, &b, &err) == 0 && b) {
        n += b->n_valid;
        ty_prefetch_release(p, b);
    }
    assert_string_equal(err.message, "");
    ty_prefetch_stop(p);
    ty_data_feed_close(feed);
    ty_stream_close(s);
    pthread_join(w.thread, NULL);
    return n;
}

static void first_bytes_tell_a_format(void **state)
{
    (void)state;
    static const struct {
        const char *text, *format, *field;
        bool wrapped;
    } cases[] = {
        {"{\"x\": 1}\n{\"x\": 2}\n{\"x\": 3}\n", "jsonlines", "x", false},
        {"1 1:2\n0 1:3\n1 1:4\n", "libsvm", "label", false},
        {"1.5,2\n3,4\n5,6\n", "csv", "x", false},
        {"1.5,2\n3,4\n5,6\n", "csv", "x", true},
        {"age,height\n3,4\n5,6\n", NULL, "x", false},
        {"17\n18\n19\n", NULL, "x", false},
        {"", NULL, "x", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_buf bytes;
        ty_field f = ty_field_make(cases[i].field);
        f.columns = "0";
        ty_buf_init(&bytes, 1 << 16);
        if (cases[i].wrapped)
            put_recordio(&bytes, cases[i].text);
        else
            ty_buf_add(&bytes, cases[i].text, strlen(cases[i].text));
        assert_int_equal(read_guessed(&f, 1, &bytes, cases[i].wrapped, cases[i].format), cases[i].format ? 3 : -1);
        ty_buf_fini(&bytes);
    }
}

/* The reading thread says so, and goes on. */
static void a_channel_that_nobody_reads_is_told(void **state)
{
    (void)state;
    writer w;
    ty_buf bytes;
    ty_error err = {0};
    ty_source *s;
    ty_block block;
    size_t n = 0;
    ty_buf_init(&bytes, 1 << 16);
    for (int i = 0; i < 1000; i++)
        ty_buf_addf(&bytes, "%d,%d\n", i, i);
    write_fifo(&w, &bytes);
    ty_source_config c = {.fifo = w.path, .timeout_ms = 60000, .block_bytes = 100, .idle_ms = 1};
    fflush(stderr);
    int before = dup(2), log = open(files_path("log"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(log, 2);
    char text[4096] = "";
    assert_int_equal(ty_source_open(&c, &s, &err), 0);
    while (!strstr(text, "does not read a channel for about an hour")) {
        usleep(1000);
        ssize_t got = pread(log, text, sizeof text - 1, 0);
        text[got > 0 ? got : 0] = 0;
    }
    dup2(before, 2);
    close(before);
    close(log);
    while (ty_source_next(s, &block, &err) == 1)
        n += block.n;
    assert_int_equal(n, bytes.len);
    ty_source_close(s);
    pthread_join(w.thread, NULL);
    ty_buf_fini(&bytes);
}

static void libsvm_rows_are_as_wide_as_the_data_say(void **state)
{
    (void)state;
    static const char *const texts[] = {"1 1:2 3:1.5\n0 2:1\n# none\n1 7:4\n", "1 0:2 3:1.5\n0 2:1\n1 6:4\n"};
    const char *paths[] = {files_path("wide")};
    ty_field f[2] = {ty_field_make("features"), ty_field_make("label")};
    for (int i = 0; i < 2; i++) {
        ty_dataset *ds = NULL;
        ty_stream *s = NULL;
        ty_error err = {0};
        files_puts("wide/a.libsvm", texts[i]);
        ty_data_source src = {.paths = paths, .n_paths = 1, .fields = f, .n_fields = 2};
        ty_stream_config c = {.paths = paths, .n_paths = 1, .fields = f, .n_fields = 2};
        assert_int_equal(ty_dataset_open(&src, &ds, &err), 0);
        assert_int_equal(ty_stream_open(&c, &s, &err), 0);
        assert_true(s->index.given);
        assert_int_equal(s->index.base, 1 - i);
        assert_int_equal(s->index.width, 7);
        compare(s, ds);
        /* Others are as wide as these. */
        ty_stream *like = NULL;
        files_puts("narrow/a.libsvm", "1 1:2\n");
        const char *narrow[] = {files_path("narrow")};
        c.paths = narrow;
        c.index = s->index;
        assert_int_equal(ty_stream_open(&c, &like, &err), 0);
        assert_true(ty_type_same(&like->field[0].type, &ds->field[0].type));
        ty_stream_close(like);
        ty_stream_close(s);
        ty_dataset_close(ds);
    }
    ty_stream_config pipe = {.channel = "train",
                             .input_folder = files_folder,
                             .state_folder = files_path("state"),
                             .format = "libsvm",
                             .fields = f,
                             .n_fields = 2};
    assert_refused(&pipe, "does not tell how wide its rows are");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_learn_what_a_data_set_learns),
        cmocka_unit_test(what_cannot_be_learnt_is_refused),
        cmocka_unit_test(pictures_are_augmented_by_their_number),
        cmocka_unit_test(labels_of_pictures_are_classes),
        cmocka_unit_test(texts_of_a_manifest_are_fields),
        cmocka_unit_test(first_bytes_tell_a_format),
        cmocka_unit_test(a_channel_that_nobody_reads_is_told),
        cmocka_unit_test(libsvm_rows_are_as_wide_as_the_data_say),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
