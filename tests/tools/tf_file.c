/* tf_file.c - what is read of a TensorFlow file, line by line, for scripts to compare.
 *
 *     tf_file [-s SIGNATURE] [-t TRAIN_SIGNATURE] show FILE     signatures, variables with CRC-32C, nodes in order
 *     tf_file [...] shift FILE TO                               written again with 1.0 added to every f32 weight
 */
#include "base/hash.h"
#include "compiler/import/tensorflow/tf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int complain(const ty_error *err)
{
    char text[4096];
    ty_error_format(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}

static void show_port(const char *what, const tf_port *p)
{
    printf("  %s %s %s [", what, p->name, tf_data_type_text(p->data_type));
    for (int i = 0; i < p->rank; i++)
        printf("%s%" PRId64, i ? "," : "", p->dim[i]);
    printf("]%s\n", p->rank < 0 ? "?" : "");
}

static void show_signature(const tf_signature *s, const char *mark)
{
    printf("signature %s%s\n", s->name, mark);
    for (int i = 0; i < s->n_inputs; i++)
        show_port("input", &s->input[i]);
    for (int i = 0; i < s->n_outputs; i++)
        show_port("output", &s->output[i]);
}

static void show_variable(const tf_variable *v)
{
    char type[160] = "?";
    uint32_t crc = 0;
    if (v->type.dtype != TY_N_DTYPES)
        ty_type_text(&v->type, type, sizeof type);
    if (v->data)
        crc = ty_crc32c(0, v->data, ty_type_bytes(&v->type));
    printf("variable %s %s %08x%s%s%s%s key %s\n", v->name, type, crc, v->trainable ? " trained" : "",
           v->is_running ? " running" : "", v->is_used ? " used" : "", v->data ? "" : " empty", v->key ? v->key : "-");
}

static int show_graph(const tf_file *f, const tf_signature *s, ty_error *err)
{
    ty_arena arena;
    tf_graph *g;
    ty_arena_init(&arena);
    int rc = tf_signature_graph(f, s, NULL, NULL, &arena, &g, err);
    if (rc == 0)
        printf("graph %s: %d nodes%s\n", g->name, g->n_nodes, g->has_loops ? " with loops" : "");
    for (int i = 0; rc == 0 && i < g->n_nodes; i++) {
        const tf_node *n = &g->node[i];
        printf("  %d %s %s", i, n->op, n->name);
        for (int k = 0; k < n->n_in; k++)
            printf(" %d:%d", n->in[k].node, n->in[k].out);
        if (n->variable >= 0 || n->constant >= 0)
            printf(" variable %s", tf_variable_at(f, n->variable >= 0 ? n->variable : n->constant)->name);
        printf("%s\n", n->is_effect ? " effect" : "");
    }
    for (int i = 0; rc == 0 && i < g->n_results; i++)
        printf("  result %s %d:%d\n", g->result[i].name, g->result_edge[i].node, g->result_edge[i].out);
    ty_arena_fini(&arena);
    return rc;
}

static int show(const tf_file *f, ty_error *err)
{
    printf("format %s\n", tf_format_text(f));
    for (int i = 0; i < tf_n_signatures(f); i++)
        show_signature(tf_signature_at(f, i), tf_signature_at(f, i) == tf_chosen_signature(f) ? " chosen" : "");
    if (tf_n_signatures(f) == 0)
        show_signature(tf_chosen_signature(f), " made");
    for (int i = 0; i < tf_n_variables(f); i++)
        show_variable(tf_variable_at(f, i));
    if (show_graph(f, tf_chosen_signature(f), err) < 0)
        return -1;
    return tf_train_signature(f) ? show_graph(f, tf_train_signature(f), err) : 0;
}

/* ---- writing ---- */

static const void *shifted(void *ctx, const tf_variable *v)
{
    if (v->type.dtype != TY_F32 || !v->data)
        return NULL;
    size_t n = ty_type_bytes(&v->type) / 4;
    float *out = ty_arena_alloc(ctx, 4 * n);
    memcpy(out, v->data, 4 * n);
    for (size_t i = 0; i < n; i++)
        out[i] += 1;
    return out;
}

int main(int argc, char **argv)
{
    tf_options opt = {0};
    tf_file *f;
    ty_error err = {0};
    for (int c; (c = getopt(argc, argv, "s:t:")) > 0;)
        *(c == 's' ? &opt.signature : &opt.train_signature) = optarg;
    argc -= optind;
    argv += optind;
    if (argc < 2 || (strcmp(argv[0], "show") != 0 && (strcmp(argv[0], "shift") != 0 || argc < 3))) {
        fprintf(stderr, "usage: tf_file [-s SIGNATURE] [-t TRAIN_SIGNATURE] show FILE | shift FILE TO\n");
        return 2;
    }
    if (tf_open(argv[1], &opt, &f, &err) < 0)
        return complain(&err);
    ty_arena arena;
    ty_arena_init(&arena);
    int rc = strcmp(argv[0], "show") == 0 ? show(f, &err) : tf_write(f, argv[2], shifted, &arena, &err);
    ty_arena_fini(&arena);
    if (rc < 0)
        complain(&err);
    tf_close(f);
    return rc < 0;
}
