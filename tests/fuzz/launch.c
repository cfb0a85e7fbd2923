/* What ranks write, in pieces, on its way to tagged lines; and a command that mpirun would have run elsewhere. */
#include "base/arena.h"
#include "dist/agent/remote.h"
#include "dist/agent/tag.h"

#include <stdlib.h>
#include <string.h>

/* The words are never longer than the text, and the first is orted. */
static void take_apart(const char *data, size_t size)
{
    ty_arena arena;
    ty_error err = {0};
    char **words = NULL;
    ty_arena_init(&arena);
    char *text = ty_arena_strndup(&arena, data, size);
    if (ty_remote_command(text, &arena, &words, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
    } else {
        size_t n = 0;
        for (char **word = words; *word; word++)
            n += strlen(*word);
        if (n > strlen(text) || strcmp(words[0], "orted") != 0)
            abort();
    }
    ty_arena_fini(&arena);
}

/* Pieces as long as the first byte says: every byte comes out once, and every line has its tag. */
static void put_together(const char *data, size_t size)
{
    ty_tag tag;
    ty_buf lines;
    ty_tag_init(&tag, 7, 1);
    ty_buf_init(&lines, (size_t)64 << 20);
    size_t piece = (unsigned char)data[0] + 1u, newlines = 0, tags = 0;
    for (size_t i = 0; i < size; i += piece)
        if (ty_tag_feed(&tag, data + i, size - i < piece ? size - i : piece, false, &lines) < 0)
            abort();
    if (ty_tag_feed(&tag, NULL, 0, true, &lines) < 0)
        abort();
    for (size_t i = 0; i < lines.len; i++)
        newlines += lines.data[i] == '\n';
    for (const char *at = lines.data; at < lines.data + lines.len; tags++) {
        if (strncmp(at, "[1,7]<stdout>:", 14) != 0)
            abort();
        at = (const char *)memchr(at, 10, (size_t)(lines.data + lines.len - at)) + 1;
    }
    size_t completed = data[size - 1] == '\n' ? 0 : 1;
    if (tags != newlines || lines.len != size + completed + 14 * tags)
        abort();
    ty_buf_fini(&lines);
    ty_tag_fini(&tag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > TY_TAG_LINE_BYTES)
        return 0;
    take_apart((const char *)data, size);
    put_together((const char *)data, size);
    return 0;
}
