/* command_data_tokenize.c - `trainyard data tokenize`: the tokens of texts as one flat file.
 *
 * uint16 where all ids fit, else uint32, without a header: what `format: tokens` maps. The numbers of characters, which
 * no other file tells, go beside it as a tokenizer.json.
 */
#include "base/file.h"
#include "container/input/tokenizer/corpus.h"
#include "entrypoint/command_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { TOKENIZE_BLOCK = 65536 };

static int tokenize_windows(const ty_arguments_given *given, ty_windows *out, ty_error *err)
{
    const char *symbols = given->value[TY_DATA_SYMBOLS];
    *out = (ty_windows){.tokenizer = given->value[TY_DATA_TOKENIZER], .end_token = given->value[TY_DATA_END_TOKEN]};
    if (symbols && strcmp(symbols, "bytes") == 0)
        out->symbols = TY_SYMBOLS_BYTES;
    else if (symbols && strcmp(symbols, "characters") != 0)
        return ty_error_set(err, TY_E_USAGE, "--symbols needs bytes or characters, found \"%.100s\"", symbols);
    if (!out->tokenizer == !symbols)
        return ty_error_set(err, TY_E_USAGE, "tokenize needs --tokenizer=FILE or --symbols=NAME%s",
                            symbols ? ", not both" : "");
    return 0;
}

/* Complete under its name, or not there. */
static int tokenize_write(const ty_corpus *c, ty_dtype dtype, const char *path, ty_arena *a, ty_error *err)
{
    const char *draft = ty_arena_printf(a, "%s.part", path);
    uint8_t *block = malloc(TOKENIZE_BLOCK * ty_dtype_bytes(dtype));
    int fd = block ? open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
    int rc = fd >= 0 ? 0 : ty_error_errno(err, block ? TY_E_NONE : TY_E_LIMIT, errno, "cannot write %s", path);
    for (int64_t at = 0; rc == 0 && at < c->n; at += TOKENIZE_BLOCK) {
        int64_t n = c->n - at < TOKENIZE_BLOCK ? c->n - at : TOKENIZE_BLOCK;
        ty_corpus_read(c, at, n, dtype, block);
        rc = ty_file_write_all(fd, block, (size_t)n * ty_dtype_bytes(dtype), path, err);
    }
    if (rc == 0 && fsync(fd) != 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot write %s", path);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && rename(draft, path) != 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot write %s", path);
    if (rc < 0)
        unlink(draft);
    free(block);
    return rc;
}

static int tokenize_describe(const ty_corpus *c, const char *path, ty_arena *a, ty_error *err)
{
    if (!c->symbol)
        return 0;
    ty_buf text;
    ty_buf_init(&text, TY_TOKENIZER_MAX_FILE_BYTES);
    int rc = ty_corpus_describe(c, &text, err);
    if (rc == 0)
        rc = ty_file_write(ty_arena_printf(a, "%s.tokenizer.json", path), text.data, text.len, 0644, err);
    ty_buf_fini(&text);
    return rc;
}

/* An npy file has a header, by which it would be read. */
static int tokenize_check_name(const char *path, ty_error *err)
{
    size_t n = strlen(path);
    if (n < 4 || strcasecmp(path + n - 4, ".npy") != 0)
        return 0;
    ty_error_set(err, TY_E_USAGE, "tokenize writes numbers without a header, which is no npy file: %s", path);
    return ty_error_help(err, "call it NAME.bin");
}

int ty_command_data_tokenize(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_windows w;
    ty_data_file *files;
    int n_files;
    ty_corpus c = {.n_parts = 0};
    if (tokenize_check_name(given->words[2], err) < 0 || tokenize_windows(given, &w, err) < 0 ||
        ty_files_list(&given->words[1], 1, a, &files, &n_files, err) < 0)
        return -1;
    int rc = ty_corpus_open_text(&w, NULL, files, n_files, NULL, a, &c, err);
    ty_dtype dtype = c.n_ids <= 65536 ? TY_U16 : TY_U32;
    if (rc == 0)
        rc = tokenize_write(&c, dtype, given->words[2], a, err);
    if (rc == 0)
        rc = tokenize_describe(&c, given->words[2], a, err);
    if (rc == 0)
        printf("%lld tokens of %lld, as %s, from %d file%s in %s\n", (long long)c.n, (long long)c.n_ids,
               dtype == TY_U16 ? "uint16" : "uint32", n_files, n_files == 1 ? "" : "s", given->words[2]);
    ty_corpus_close(&c);
    return rc;
}
