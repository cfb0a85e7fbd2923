/* mapped.c - fields of a table that have transforms (map/map.h). */
#include "container/input/table/walk.h"

#include "container/input/convert.h"
#include "container/input/header.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Without blanks around it, unless it stands in quotes. What is missing is an empty field, or a marker such as NA that
 * is not in quotes. */
int walk_store_text(table_walk *w, const ty_csv_field *f, const table_target *at)
{
    ty_text t = {f->text, f->n};
    while (!f->quoted && t.n > 0 && isspace((unsigned char)*t.p))
        t.p++, t.n--;
    while (!f->quoted && t.n > 0 && isspace((unsigned char)t.p[t.n - 1]))
        t.n--;
    bool is_missing = (!f->quoted || t.n == 0) && ty_csv_is_missing(&w->t->missing, t.p, t.n);
    if (f->quoted && memchr(t.p, '"', t.n)) {
        char *plain = ty_arena_alloc(&w->plain, t.n + 1);
        t = (ty_text){plain, ty_csv_unquote(f, plain)};
    }
    ty_field_info *seen = &w->chunk->seen[at->field];
    if (is_missing && seen->n_missing++ == 0)
        seen->first_missing = w->chunk->n_rows;
    w->text[w->t->field[at->field].slot + at->elem] = is_missing ? (ty_text){NULL, 0} : t;
    return 0;
}

static void mapped_cells(const table_walk *w, const table_field *tf, ty_cells *out)
{
    *out = (ty_cells){.n = tf->n_elems, .kind = tf->kind == TABLE_TEXT ? TY_CELLS_TEXTS : TY_CELLS_NUMBERS};
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        out->n_part[i] = tf->n_part[i];
    if (tf->kind == TABLE_TEXT)
        out->u.text = w->text + tf->slot;
    else
        out->u.number = w->real + tf->slot;
}

void walk_forget_texts(table_walk *w)
{
    ty_arena_fini(&w->plain);
    ty_arena_init(&w->plain);
}

int walk_finish_mapped(table_walk *w, int64_t line, int field, ty_error *err)
{
    const table_field *tf = &w->t->field[field];
    const ty_field_info *info = &w->t->ds->field[field];
    ty_cells cells;
    if (!ty_map_is_settled(tf->declared->map))
        return 0; /* walk_learn */
    mapped_cells(w, tf, &cells);
    if (ty_map_put(tf->declared->map, &cells, &info->type,
                   tf->data + (size_t)(w->chunk->first + w->chunk->n_rows) * info->row_bytes, err) < 0)
        return ty_error_at(err, "%s:%lld", w->csv.name, (long long)line);
    return 0;
}

/* Shows the fields that learn the record, or only asks whether they would take it. */
static int mapped_show(table_walk *w, bool learns, ty_error *err)
{
    ty_cells cells;
    for (int i = 0; i < w->t->n_fields; i++) {
        const table_field *tf = &w->t->field[i];
        const ty_field *d = tf->declared;
        if (!d->map || ty_map_is_settled(d->map))
            continue;
        mapped_cells(w, tf, &cells);
        if ((learns ? ty_map_see(d->map, &cells, err)
                    : ty_map_check(d->map, &cells, d->dtype_given && ty_dtype_is_integer(d->dtype), err)) < 0)
            return -1;
    }
    return 0;
}

/* A record of which nothing else is wrong. One that may be left out teaches no field before all have agreed to it. */
int walk_learn(table_walk *w, int64_t line, ty_error *err)
{
    if ((w->t->ds->bad.skip && mapped_show(w, false, err) < 0) || mapped_show(w, true, err) < 0)
        return ty_error_at(err, "%s:%lld", w->csv.name, (long long)line);
    return 0;
}
