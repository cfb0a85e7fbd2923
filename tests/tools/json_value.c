/* json_value FILE [KEY | NUMBER | '*']...: prints what stands at the end of a path through a JSON file, a value a line.
 *
 *     json_value plan.json machine threads            2
 *     json_value profile.json layers '*' share        one line a layer
 *     json_value profile.json layers                  [14]: how many items a list or map has
 *
 * A number counts from 0; '*' are all items, and those where the path does not go on are left out. Exits with 1 and a
 * message if the file is no JSON or nothing is found.
 */
#include "base/arena.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_value(const ty_doc *d)
{
    if (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP)
        printf("[%zu]\n", ty_doc_len(d));
    else
        puts(d->raw);
}

/* Returns how many values it printed. */
static size_t walk(const ty_doc *d, char **path)
{
    size_t n = 0;
    if (!d)
        return 0;
    if (!path[0]) {
        print_value(d);
        return 1;
    }
    if (strcmp(path[0], "*") == 0)
        for (size_t i = 0; i < ty_doc_len(d); i++)
            n += walk(ty_doc_at(d, i), path + 1);
    else if (d->kind == TY_DOC_LIST)
        n = walk(ty_doc_at(d, strtoul(path[0], NULL, 10)), path + 1);
    else
        n = walk(ty_doc_find(d, path[0]), path + 1);
    return n;
}

int main(int argc, char **argv)
{
    ty_arena a;
    ty_doc *root;
    ty_error err = {0};
    if (argc < 2)
        return fputs("usage: json_value FILE [KEY | NUMBER | '*']...\n", stderr), 2;
    ty_arena_init(&a);
    size_t n = 0;
    if (ty_json_read(&a, argv[1], NULL, &root, &err) < 0)
        fprintf(stderr, "json_value: %s: %s\n", argv[1], err.message);
    else if ((n = walk(root, argv + 2)) == 0)
        fprintf(stderr, "json_value: %s: nothing there\n", argv[1]);
    ty_arena_fini(&a);
    return n == 0;
}
