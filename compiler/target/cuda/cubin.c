/* cubin.c - names in the string tables of a cubin. See cubin.h. */
#define _GNU_SOURCE
#include "compiler/target/cuda/cubin.h"

#include <elf.h>
#include <string.h>

typedef struct cubin_view {
    const unsigned char *at;
    size_t bytes;
    Elf64_Ehdr head;
} cubin_view;

static bool cubin_open(const void *cubin, size_t bytes, cubin_view *v)
{
    *v = (cubin_view){.at = cubin, .bytes = bytes};
    if (bytes < sizeof v->head)
        return false;
    memcpy(&v->head, cubin, sizeof v->head);
    return memcmp(v->head.e_ident, ELFMAG, SELFMAG) == 0 && v->head.e_ident[EI_CLASS] == ELFCLASS64 &&
           v->head.e_shentsize == sizeof(Elf64_Shdr) && v->head.e_shoff <= bytes &&
           (bytes - v->head.e_shoff) / sizeof(Elf64_Shdr) >= v->head.e_shnum;
}

/* Section i; false if it is not all in there. */
static bool cubin_section(const cubin_view *v, int i, Elf64_Shdr *out)
{
    memcpy(out, v->at + v->head.e_shoff + (size_t)i * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || (out->sh_offset <= v->bytes && out->sh_size <= v->bytes - out->sh_offset);
}

bool ty_cubin_lacks(const void *cubin, size_t bytes, const char *name)
{
    cubin_view v;
    Elf64_Shdr s;
    if (!cubin_open(cubin, bytes, &v))
        return false;
    for (int i = 0; i < v.head.e_shnum; i++)
        if (!cubin_section(&v, i, &s) ||
            (s.sh_type == SHT_STRTAB && memmem(v.at + s.sh_offset, s.sh_size, name, strlen(name) + 1)))
            return false;
    return true;
}
