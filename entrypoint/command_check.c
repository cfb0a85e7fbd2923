/* command_check.c - `trainyard check MODEL`: everything in a model that cannot be compiled, at once. */
#include "base/json.h"
#include "base/quantity.h"
#include "compiler/compiler.h"
#include "entrypoint/command.h"
#include "entrypoint/complain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH, JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [BATCH] = {"--batch", "N", "rows that stand for a free batch dimension (default 1)", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

static void value_text(const ty_model_value *v, char *out, size_t n)
{
    int len = snprintf(out, n, "%s[", ty_dtype_text(v->dtype));
    for (int i = 0; i < v->rank && (size_t)len < n; i++) {
        const char *comma = i ? "," : "";
        if (v->dim[i] >= 0)
            len += snprintf(out + len, n - (size_t)len, "%s%lld", comma, (long long)v->dim[i]);
        else
            len += snprintf(out + len, n - (size_t)len, "%s%.40s", comma, v->dim_name[i] ? v->dim_name[i] : "?");
    }
    if ((size_t)len < n)
        snprintf(out + len, n - (size_t)len, "]");
}

static int64_t count_numbers(const ty_model *m)
{
    int64_t n = 0;
    for (int i = 0; i < ty_model_n_weights(m); i++) {
        const ty_model_value *w = ty_model_weight(m, i);
        int64_t elems = ty_dims_elems_checked(w->rank, w->dim, 1);
        n += elems > 0 && w->trainable_hint ? elems : 0;
    }
    return n;
}

static void print_text(const ty_model *m, const char *path, const ty_buf *report, int n_faults)
{
    char text[320], count[32];
    printf("%s: %s, %lld nodes, %d weights with %s numbers to train\n", path, ty_model_format(m),
           (long long)ty_model_n_nodes(m), ty_model_n_weights(m), ty_count_text(count_numbers(m), count, sizeof count));
    for (int i = 0; i < ty_model_n_inputs(m); i++) {
        value_text(ty_model_input(m, i), text, sizeof text);
        printf("  input   %-24s %s\n", ty_model_input(m, i)->name, text);
    }
    for (int i = 0; i < ty_model_n_outputs(m); i++) {
        value_text(ty_model_output(m, i), text, sizeof text);
        printf("  output  %-24s %s\n", ty_model_output(m, i)->name, text);
    }
    for (int i = 0; i < ty_model_n_warnings(m); i++)
        printf("warning: %s\n   = help: %s\n", ty_model_warning_at(m, i)->text, ty_model_warning_at(m, i)->help);
    if (report->len > 0)
        fputs(report->data, stdout);
    if (n_faults == 0)
        puts("all of it can be trained");
    else
        printf("%d fault%s\n", n_faults, n_faults == 1 ? "" : "s");
}

static void put_values(ty_json_writer *w, const ty_model *m, const char *key, int n,
                       const ty_model_value *(*at)(const ty_model *m, int i))
{
    char text[320];
    ty_json_open_map(w, key);
    for (int i = 0; i < n; i++) {
        value_text(at(m, i), text, sizeof text);
        ty_json_put_string(w, at(m, i)->name, text);
    }
    ty_json_close(w);
}

static void print_json(const ty_model *m, const char *path, const ty_buf *report, int n_faults)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, (size_t)16 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "model", path);
    ty_json_put_string(&w, "format", ty_model_format(m));
    ty_json_put_int(&w, "nodes", ty_model_n_nodes(m));
    ty_json_put_int(&w, "numbers", count_numbers(m));
    put_values(&w, m, "inputs", ty_model_n_inputs(m), ty_model_input);
    put_values(&w, m, "outputs", ty_model_n_outputs(m), ty_model_output);
    ty_json_open_list(&w, "warnings");
    for (int i = 0; i < ty_model_n_warnings(m); i++)
        ty_json_put_string(&w, NULL, ty_model_warning_at(m, i)->text);
    ty_json_close(&w);
    ty_json_put_int(&w, "faults", n_faults);
    ty_json_put_string(&w, "report", report->data);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

static int parse_batch(const char *text, int64_t *batch, ty_error *err)
{
    char *end;
    *batch = 1;
    if (!text)
        return 0;
    errno = 0;
    *batch = strtoll(text, &end, 10);
    if (errno == 0 && *end == 0 && end != text && *batch >= 1 && *batch <= 1 << 24)
        return 0;
    return ty_error_set(err, TY_E_USAGE, "--batch needs a number from 1 to %d, found \"%s\"", 1 << 24, text);
}

static int check(const ty_arguments_given *given, ty_model **m, ty_error *err)
{
    int64_t batch;
    int n_faults = 0;
    ty_buf report;
    if (parse_batch(given->value[BATCH], &batch, err) < 0 || ty_model_open(given->words[0], m, err) < 0)
        return -1;
    ty_buf_init(&report, (size_t)4 << 20);
    int rc = ty_model_check(*m, batch, &report, &n_faults, err);
    if (rc == 0)
        (given->value[JSON] ? print_json : print_text)(*m, given->words[0], &report, n_faults);
    ty_buf_fini(&report);
    return rc < 0 ? -1 : n_faults > 0 ? ty_error_exit_status(TY_E_UNSUPPORTED) : 0;
}

static int run(const ty_arguments_given *given)
{
    ty_error err = {0};
    ty_model *m = NULL;
    int status = check(given, &m, &err);
    if (status < 0)
        status = given->value[JSON] ? ty_complain_json(&err) : ty_complain(&err);
    ty_model_free(m);
    return status;
}

const ty_command_row ty_command_check = {"check",
                                         "MODEL",
                                         "list everything in a model that cannot be trained",
                                         "    trainyard check model.onnx --batch 64\n",
                                         options,
                                         N_OPTIONS,
                                         1,
                                         1,
                                         false,
                                         false,
                                         run};
