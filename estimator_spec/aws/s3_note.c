/* s3_note.c - see s3_note.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/s3_note.h"

#include "base/file.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MAX_NOTE_BYTES = 4 << 20 }; /* 10,000 parts of some 200 bytes */
#define HEAD "trainyard upload 1\n"

/* ---- reading ---- */

/* The next line without its end; false if there is no whole one. */
static bool next_line(const char **at, const char *end, char *line, size_t room)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    size_t n = stop ? (size_t)(stop - *at) : 0;
    if (!stop || n >= room || memchr(*at, 0, n))
        return false;
    memcpy(line, *at, n);
    line[n] = 0;
    *at = stop + 1;
    return true;
}

static bool take_hex(const char *text, char out[TY_SHA256_HEX_BYTES])
{
    bool fits = strlen(text) == TY_SHA256_HEX_BYTES - 1 && strspn(text, "0123456789abcdef") == TY_SHA256_HEX_BYTES - 1;
    strcpy(out, fits ? text : "");
    return fits;
}

static bool take_part(const char *line, ty_s3_noted *part)
{
    char number[8], sha256[80], etag[128];
    int end = 0;
    if (sscanf(line, "part %7[0-9] %79s %127s%n", number, sha256, etag, &end) != 3 || line[end])
        return false;
    *part = (ty_s3_noted){.number = (uint32_t)atoi(number)};
    strcpy(part->etag, etag);
    return part->number >= 1 && part->number <= TY_S3_MAX_PARTS && take_hex(sha256, part->sha256);
}

void ty_s3_note_read(const char *text, size_t len, ty_arena *arena, ty_s3_note *note)
{
    char line[TY_S3_MAX_KEY_BYTES + 8];
    const char *at = text, *end = text + len;
    note->upload_id[0] = 0;
    note->n_parts = 0;
    note->parts = NULL;
    if (!next_line(&at, end, line, sizeof line) || strcmp(line, "trainyard upload 1") != 0 ||
        !next_line(&at, end, line, sizeof line) || strncmp(line, "what ", 5) != 0 || !take_hex(line + 5, note->what) ||
        !next_line(&at, end, line, sizeof line) || strncmp(line, "id ", 3) != 0 ||
        strlen(line + 3) > TY_S3_MAX_KEY_BYTES)
        return;
    strcpy(note->upload_id, line + 3);
    note->parts = TY_NEW_ARRAY(arena, ty_s3_noted, TY_S3_MAX_PARTS);
    while (note->n_parts < TY_S3_MAX_PARTS && next_line(&at, end, line, sizeof line) &&
           take_part(line, &note->parts[note->n_parts]))
        note->n_parts++;
}

/* ---- the file ---- */

/* Opened and held; -1 if it cannot be. */
static int open_held(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void ty_s3_note_open(const char *folder, const char *name, ty_arena *arena, ty_s3_note *out)
{
    ty_buf text;
    ty_error why = {0};
    *out = (ty_s3_note){.fd = -1};
    if (!folder)
        return;
    const char *path = ty_arena_printf(arena, "%s/%s", folder, name);
    if (ty_file_mkdirs(folder, 0700, &why) < 0 || (out->fd = open_held(path)) < 0) {
        ty_log_debug("aws", "no note of the upload is kept: %s %s", path, why.message);
        return;
    }
    out->path = strdup(path);
    ty_buf_init(&text, MAX_NOTE_BYTES);
    if (ty_file_read(path, &text, &why) == 0)
        ty_s3_note_read(text.data, text.len, arena, out);
    ty_buf_fini(&text);
}

static void write_note(ty_s3_note *note, const char *text)
{
    ty_error why = {0};
    if (!note->path || ty_file_write_all(note->fd, text, strlen(text), note->path, &why) == 0)
        return;
    ty_log_debug("aws", "no note of the upload is kept any more: %s", why.message);
    ty_s3_note_close(note, true);
}

void ty_s3_note_begin(ty_s3_note *note, const char *what, const char *upload_id)
{
    char head[TY_S3_MAX_KEY_BYTES + 128];
    note->n_parts = 0;
    snprintf(note->what, sizeof note->what, "%s", what);
    snprintf(note->upload_id, sizeof note->upload_id, "%s", upload_id);
    if (note->path && ftruncate(note->fd, 0) < 0)
        ty_s3_note_close(note, true);
    snprintf(head, sizeof head, HEAD "what %s\nid %s\n", note->what, note->upload_id);
    write_note(note, head);
}

void ty_s3_note_add(ty_s3_note *note, uint32_t number, const char *sha256, const char *etag)
{
    char line[256];
    snprintf(line, sizeof line, "part %u %s %s\n", number, sha256, etag);
    write_note(note, line);
}

void ty_s3_note_close(ty_s3_note *note, bool with_file)
{
    if (note->path && with_file)
        unlink(note->path);
    if (note->fd >= 0)
        close(note->fd);
    free(note->path);
    note->path = NULL;
    note->fd = -1;
}
