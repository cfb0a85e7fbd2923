/* What S3 answers and what a note of an upload says: nothing that is taken is beyond the bounds that s3_parts.h and
 * s3_note.h promise. The first byte chooses the reader. */
#include "estimator_spec/aws/s3_note.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void expect(int is)
{
    if (!is)
        abort();
}

static void expect_refusal(const ty_error *err)
{
    expect(err->code == TY_E_SERVICE && err->message[0]);
}

static void look_at_page(const char *text, size_t len, ty_arena *arena)
{
    ty_s3_page page;
    ty_error err = {0};
    if (ty_s3_read_page(text, len, arena, &page, &err) < 0) {
        expect_refusal(&err);
        return;
    }
    for (size_t i = 0; i < page.n; i++) {
        const ty_s3_object *o = &page.objects[i];
        const char *name = NULL;
        expect(*o->key && strlen(o->key) <= TY_S3_MAX_KEY_BYTES && o->n_bytes <= INT64_MAX);
        expect(strlen(o->etag) < sizeof o->etag);
        if (ty_s3_name_below("", o->key, arena, &name, &err) < 0)
            continue;
        expect(*name && *name != '/' && !strstr(name, "//") && strncmp(name, "../", 3) != 0 && !strstr(name, "/../"));
        expect(strcmp(name, "..") != 0 && strlen(name) <= strlen(o->key));
    }
    expect(!page.next || *page.next);
}

static void look_at_parts(const char *text, size_t len, ty_arena *arena)
{
    ty_s3_part_page page;
    ty_error err = {0};
    if (ty_s3_read_parts(text, len, arena, &page, &err) < 0) {
        expect_refusal(&err);
        return;
    }
    for (size_t i = 0; i < page.n; i++)
        expect(page.parts[i].number >= 1 && page.parts[i].number <= TY_S3_MAX_PARTS && page.parts[i].etag[0] &&
               !strpbrk(page.parts[i].etag, "<&\n"));
    expect(page.next <= TY_S3_MAX_PARTS);
}

static void look_at_note(const char *text, size_t len, ty_arena *arena)
{
    ty_s3_note note = {.fd = -1};
    ty_s3_note_read(text, len, arena, &note);
    expect(strlen(note.upload_id) <= TY_S3_MAX_KEY_BYTES && note.n_parts <= TY_S3_MAX_PARTS);
    for (size_t i = 0; i < note.n_parts; i++)
        expect(note.parts[i].number >= 1 && note.parts[i].number <= TY_S3_MAX_PARTS &&
               strlen(note.parts[i].sha256) == 64 && note.parts[i].etag[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena arena;
    const char *text = (const char *)data + 1, *word = NULL;
    ty_error err = {0};
    if (size < 1)
        return 0;
    size--;
    ty_arena_init(&arena);
    if (data[0] == 'p')
        look_at_parts(text, size, &arena);
    else if (data[0] == 'n')
        look_at_note(text, size, &arena);
    else if (data[0] == 'u' && ty_s3_read_upload(text, size, &arena, &word, &err) == 0)
        expect(*word && strlen(word) <= TY_S3_MAX_KEY_BYTES);
    else if (data[0] == 'e' && (word = ty_s3_read_region(text, size, &arena)))
        expect(ty_region_is_valid(word));
    else if (data[0] == 'e')
        (void)ty_s3_is_error(text, size);
    else if (data[0] == 'l')
        look_at_page(text, size, &arena);
    ty_arena_fini(&arena);
    return 0;
}
