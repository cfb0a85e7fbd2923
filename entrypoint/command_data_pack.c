/* command_data_pack.c - `trainyard data pack`: many small files as few large ones.
 *
 * Pictures and sounds become records with their bytes as they are, the name of their class as the label, and their
 * path. Files of TFRecords are put together record by record. All else is converted.
 */
#include "entrypoint/command_data_pack.h"

#include "base/rng.h"
#include "container/input/audio/audio.h"
#include "container/input/bytes.h"
#include "container/input/format.h"
#include "container/input/frame.h"
#include "container/output/example.h"

#include <stdlib.h>
#include <string.h>

#define PACK_STREAM 0x5041434bu /* of the order of files */

typedef struct packer {
    ty_data_file *file;
    int n_files;
    uint32_t *order;
    const char **classes; /* their names, sorted; none: all files lie side by side */
    int n_classes;
    const struct pack_media *media;
    ty_shards *shards;
    ty_example_writer example;
    ty_arena *a;
} packer;

static bool pack_is_picture(const char *path)
{
    uint8_t p[8] = {0};
    size_t n = ty_bytes_head(path, p, sizeof p);
    return (n >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0) || (n == 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0) ||
           (n >= 3 && p[0] == 'P' && (p[1] == '5' || p[1] == '6') && strchr(" \t\r\n", p[2]) != NULL) ||
           (n == 8 && memcmp(p, "BM", 2) == 0);
}

static bool pack_is_sound(const char *path)
{
    uint8_t p[16];
    return ty_audio_has_magic(p, ty_bytes_head(path, p, sizeof p));
}

/* What is packed with its bytes as they are. */
static const struct pack_media {
    const char *field, *what;
    bool (*is)(const char *path);
} pack_media[] = {
    {"image", "a picture (JPEG, PNG, BMP, PNM)", pack_is_picture},
    {"audio", "a sound (WAV, FLAC, Ogg, MP3, AIFF, AU)", pack_is_sound},
};

/* ---- pictures and sounds ---- */

static const char *pack_class_of(packer *p, const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? ty_arena_strndup(p->a, name, (size_t)(slash - name)) : "";
}

static int pack_compare(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void pack_find_classes(packer *p)
{
    int n = 0;
    p->classes = TY_NEW_ARRAY(p->a, const char *, p->n_files);
    for (int i = 0; i < p->n_files; i++)
        p->classes[i] = pack_class_of(p, p->file[i].name);
    qsort(p->classes, (size_t)p->n_files, sizeof *p->classes, pack_compare);
    for (int i = 0; i < p->n_files; i++)
        if (n == 0 || strcmp(p->classes[n - 1], p->classes[i]) != 0)
            p->classes[n++] = p->classes[i];
    p->n_classes = n == 1 && p->classes[0][0] == 0 ? 0 : n;
}

static int pack_encoded(packer *p, const ty_data_file *file, ty_error *err)
{
    ty_file_view view;
    if (!p->media->is(file->path)) {
        ty_error_set(err, TY_E_DATA, "expected %s as the first file is, found something else", p->media->what);
        return ty_error_at(err, "%s", file->path);
    }
    if (ty_file_map(file->path, &view, err) < 0)
        return -1;
    ty_example_clear(&p->example);
    ty_example_add_bytes(&p->example, p->media->field, view.bytes, view.n_bytes);
    if (p->n_classes > 0) {
        const char *name = pack_class_of(p, file->name);
        ty_example_add_bytes(&p->example, "label", name, strlen(name));
    }
    ty_example_add_bytes(&p->example, "path", file->name, strlen(file->name));
    ty_file_unmap(&view);
    const ty_buf *record = ty_example_record(&p->example);
    if (record != NULL)
        return ty_shards_add(p->shards, record->data, record->len, err);
    ty_error_set(err, TY_E_LIMIT, "the file is too large for a record");
    return ty_error_at(err, "%s", file->path);
}

/* All names of labels, one a line, under a name that is no data file's. */
static int pack_write_classes(packer *p, ty_error *err)
{
    ty_buf text;
    if (p->n_classes == 0)
        return 0;
    ty_buf_init(&text, (size_t)64 << 20);
    for (int i = 0; i < p->n_classes; i++)
        ty_buf_addf(&text, "%s\n", p->classes[i]);
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "too many classes")
                         : ty_shards_add_file(p->shards, "_classes.txt", text.data, text.len, err);
    ty_buf_fini(&text);
    return rc;
}

/* ---- records ---- */

static int pack_records(packer *p, const ty_data_file *file, ty_error *err)
{
    ty_bytes bytes;
    ty_frame record;
    if (ty_bytes_open(file->path, NULL, &bytes, err) < 0)
        return -1;
    ty_frames f = {.bytes = bytes.data, .n = bytes.n, .how = TY_FRAMES_TFRECORD};
    int rc;
    while ((rc = ty_frames_next(&f, &record, err)) == 1)
        if ((rc = ty_shards_add(p->shards, record.data, record.n, err)) < 0)
            break;
    ty_frames_fini(&f);
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", file->path) : 0;
}

/* ---- the command ---- */

static int pack_files(packer *p, int (*one)(packer *, const ty_data_file *, ty_error *), ty_error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < p->n_files; i++)
        rc = one(p, &p->file[p->order[i]], err);
    return rc;
}

static int pack_converted(const ty_arguments_given *given, packer *p, ty_error *err)
{
    ty_data_opened d;
    if (given->value[TY_DATA_SHUFFLE] != NULL)
        return ty_error_set(err, TY_E_USAGE,
                            "--shuffle is for pictures, sounds and TFRecord files, whose order is that of files");
    if (ty_data_open(given, p->a, &d, err) < 0)
        return -1;
    int rc = ty_data_convert_into(&d, p->shards, err);
    ty_dataset_close(d.ds);
    return rc;
}

static int pack_all(const ty_arguments_given *given, packer *p, ty_error *err)
{
    const ty_format *format = NULL;
    ty_data_source source = {.format = given->value[TY_DATA_FORMAT]};
    for (size_t i = 0; source.format == NULL && i < sizeof pack_media / sizeof pack_media[0]; i++)
        if (pack_media[i].is(p->file[0].path)) {
            p->media = &pack_media[i];
            pack_find_classes(p);
            return pack_files(p, pack_encoded, err) < 0 ? -1 : pack_write_classes(p, err);
        }
    if (ty_format_detect(&source, p->file, p->n_files, &format, err) < 0)
        return -1;
    return strcmp(format->name, "tfrecord") == 0 ? pack_files(p, pack_records, err) : pack_converted(given, p, err);
}

static int pack_order(const ty_arguments_given *given, packer *p, ty_error *err)
{
    const char *text = given->value[TY_DATA_SHUFFLE];
    char *end;
    p->order = TY_NEW_ARRAY(p->a, uint32_t, p->n_files);
    for (int i = 0; i < p->n_files; i++)
        p->order[i] = (uint32_t)i;
    if (text == NULL)
        return 0;
    unsigned long long seed = strtoull(text, &end, 10);
    if (end == text || *end != 0)
        return ty_error_set(err, TY_E_USAGE, "--shuffle needs a number, found \"%.100s\"", text);
    ty_rng_permutation(seed, PACK_STREAM, 0, p->n_files, p->order);
    return 0;
}

int ty_command_data_pack(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_shards shards = {0};
    packer p = {.a = a, .shards = &shards};
    uint64_t max_bytes;
    const char *folder = given->value[TY_DATA_OUT];
    if (folder == NULL)
        return ty_error_set(err, TY_E_USAGE, "`data pack` needs --out=FOLDER");
    if (ty_data_check_folder(folder, err) < 0 ||
        ty_data_file_bytes(given, TY_DATA_SIZE, "--size", &max_bytes, err) < 0 ||
        ty_files_list(&given->words[1], given->n_words - 1, a, &p.file, &p.n_files, err) < 0 ||
        pack_order(given, &p, err) < 0)
        return -1;
    ty_example_writer_init(&p.example, (size_t)1 << 30);
    int rc = ty_shards_open(&shards, folder, max_bytes, err);
    if (rc == 0)
        rc = pack_all(given, &p, err);
    if (rc == 0)
        rc = ty_shards_commit(&shards, err);
    ty_shards_abandon(&shards);
    ty_example_writer_fini(&p.example);
    if (rc == 0)
        ty_data_print_shards(&shards, "records", folder);
    return rc;
}
