/* served_tables.c - see served_tables.h. */
#include "entrypoint/served_tables.h"

#include <string.h>

void ty_served_tables_init(ty_served_tables *t, ty_program *p, int most, ty_arena *a)
{
    *t = (ty_served_tables){.program = p,
                            .table = TY_NEW_ARRAY(a, ty_served_table, most + 1),
                            .rows = TY_NEW_ARRAY(a, ty_client_rows, most + 1)};
}

int64_t ty_served_tables_find(const ty_served_tables *t, const char *weight)
{
    for (int i = 0; i < ty_program_n_outputs(t->program, TY_RUN_ROWS); i++) {
        const char *name = ty_program_output_name(t->program, TY_RUN_ROWS, i);
        if (strcmp(name + strlen("rows."), weight) == 0)
            return ty_type_elems(&ty_program_output(t->program, TY_RUN_ROWS, name)->type);
    }
    return 0;
}

void ty_served_tables_add(ty_served_tables *t, int variable, const ty_shard_variable *v, int64_t most, float *weight,
                          float *gradient, ty_arena *a)
{
    int64_t *ids = TY_NEW_ARRAY(a, int64_t, most);
    t->table[t->n] =
        (ty_served_table){ty_arena_printf(a, "rows.%s", v->name), weight, gradient, v->rows, v->width, ids};
    t->rows[t->n++] = (ty_client_rows){variable, ids, 0, TY_NEW_ARRAY(a, float, most * v->width)};
}

int ty_served_tables_name(ty_served_tables *t, const void *const *inputs, ty_error *err)
{
    if (ty_program_run(t->program, TY_RUN_ROWS, inputs, err) < 0)
        return -1;
    for (int i = 0; i < t->n; i++) {
        const ty_tensor *list = ty_program_output(t->program, TY_RUN_ROWS, t->table[i].list);
        int64_t n = 0, most = ty_type_elems(&list->type);
        while (n < most && ((const int64_t *)list->data)[n] >= 0)
            n++;
        memcpy(t->table[i].ids, list->data, (size_t)n * sizeof *t->table[i].ids);
        t->rows[i].n = n;
    }
    return 0;
}

void ty_served_tables_put(const ty_served_tables *t)
{
    for (int i = 0; i < t->n; i++) {
        const ty_served_table *table = &t->table[i];
        size_t bytes = (size_t)table->width * sizeof(float);
        for (int64_t k = 0; k < t->rows[i].n; k++)
            memcpy(table->weight + table->ids[k] * table->width, t->rows[i].rows + k * table->width, bytes);
    }
}

void ty_served_tables_take(const ty_served_tables *t)
{
    for (int i = 0; i < t->n; i++) {
        const ty_served_table *table = &t->table[i];
        size_t bytes = (size_t)table->width * sizeof(float);
        for (int64_t k = 0; k < t->rows[i].n; k++) {
            float *row = table->gradient + table->ids[k] * table->width;
            memcpy(t->rows[i].rows + k * table->width, row, bytes);
            memset(row, 0, bytes);
        }
    }
}

void ty_served_tables_clear(const ty_served_tables *t)
{
    for (int i = 0; i < t->n; i++)
        memset(t->table[i].gradient, 0, (size_t)(t->table[i].n * t->table[i].width) * sizeof(float));
}
