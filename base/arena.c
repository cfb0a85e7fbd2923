/* arena.c - bump allocation from a list of blocks that double in size.
 *
 *     head -> [ next | cap | used | objects ........ free ] -> older block -> ... -> NULL
 *
 * A request larger than a quarter of a block gets a block of its own behind the head, so that the free end of the head
 * is not wasted, and comes from calloc: big ones are fresh zero pages that cost nothing until touched. In other blocks
 * an object is made zero when it is asked for: most arenas are small and gone soon, and a block that the heap has had
 * before would be zeroed whole for the little of it that is used.
 * An arena must not hide bugs: under AddressSanitizer every object is its own block, with a red zone after it.
 */
#define _GNU_SOURCE
#include "base/arena.h"

#include "base/sanitizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 16, FIRST_BLOCK_BYTES = 8 << 10, LAST_BLOCK_BYTES = 1 << 20 };

struct arena_block {
    struct arena_block *next;
    size_t cap_bytes;
    size_t used_bytes;
    size_t pad; /* keeps the objects aligned */
};

static _Noreturn void give_up(size_t n_bytes)
{
    fprintf(stderr, "trainyard: out of memory: %zu bytes refused\n", n_bytes);
    abort();
}

static struct arena_block *block_new(size_t cap_bytes, bool zero)
{
    if (cap_bytes > PTRDIFF_MAX - sizeof(struct arena_block))
        give_up(cap_bytes);
    struct arena_block *block = zero ? calloc(1, sizeof *block + cap_bytes) : malloc(sizeof *block + cap_bytes);
    if (!block)
        give_up(cap_bytes);
    *block = (struct arena_block){.cap_bytes = cap_bytes};
    return block;
}

void ty_arena_init(ty_arena *a)
{
    *a = (ty_arena){0};
}

void ty_arena_fini(ty_arena *a)
{
    for (struct arena_block *block = a->head; block;) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    *a = (ty_arena){0};
}

void ty_arena_wipe(ty_arena *a)
{
    for (struct arena_block *block = a->head; block; block = block->next)
        explicit_bzero(block + 1, block->used_bytes);
    ty_arena_fini(a);
}

static void *alloc_own_block(ty_arena *a, size_t n_bytes)
{
    struct arena_block *block = block_new(n_bytes, true);
    block->used_bytes = n_bytes;
    if (a->head && !TY_SANITIZES_ADDRESS) {
        block->next = a->head->next;
        a->head->next = block;
    } else {
        block->next = a->head;
        a->head = block;
    }
    return block + 1;
}

void *ty_arena_alloc(ty_arena *a, size_t n_bytes)
{
    a->used_bytes += n_bytes;
    if (TY_SANITIZES_ADDRESS)
        return alloc_own_block(a, n_bytes);
    if (n_bytes > LAST_BLOCK_BYTES / 4)
        return alloc_own_block(a, n_bytes);
    size_t need_bytes = n_bytes ? (n_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES : ALIGN_BYTES;
    struct arena_block *head = a->head;
    if (!head || head->cap_bytes - head->used_bytes < need_bytes) {
        size_t cap_bytes = head ? head->cap_bytes * 2 : FIRST_BLOCK_BYTES;
        if (cap_bytes > LAST_BLOCK_BYTES)
            cap_bytes = LAST_BLOCK_BYTES;
        struct arena_block *block = block_new(cap_bytes > need_bytes ? cap_bytes : need_bytes, false);
        block->next = head;
        a->head = head = block;
    }
    void *object = (char *)(head + 1) + head->used_bytes;
    head->used_bytes += need_bytes;
    return memset(object, 0, need_bytes);
}

void *ty_arena_alloc_array(ty_arena *a, size_t elem_bytes, size_t n_elems)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(elem_bytes, n_elems, &n_bytes))
        give_up(SIZE_MAX);
    return ty_arena_alloc(a, n_bytes);
}

void *ty_arena_copy(ty_arena *a, const void *src, size_t n_bytes)
{
    void *object = ty_arena_alloc(a, n_bytes);
    if (n_bytes)
        memcpy(object, src, n_bytes);
    return object;
}

char *ty_arena_strndup(ty_arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = ty_arena_alloc(a, len + 1);
    memcpy(copy, s, len);
    return copy;
}

char *ty_arena_strdup(ty_arena *a, const char *s)
{
    return ty_arena_copy(a, s, strlen(s) + 1);
}

char *ty_arena_printf(ty_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = ty_arena_alloc(a, len > 0 ? (size_t)len + 1 : 1);
    if (len > 0)
        vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    return text;
}
