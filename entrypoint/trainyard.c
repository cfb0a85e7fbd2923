/* trainyard.c - the command line: a table of commands, their arguments, their help. */
#define _GNU_SOURCE
#include "base/log.h"
#include "base/suggest.h"
#include "dist/agent/remote.h"
#include "entrypoint/command.h"
#include "entrypoint/complain.h"
#include "entrypoint/recipe.h"
#include "entrypoint/threads.h"
#include "entrypoint/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ty_command_row *const commands[] = {
    &ty_command_train,    &ty_command_check,    &ty_command_plan,   &ty_command_profile, &ty_command_graph,
    &ty_command_replay,   &ty_command_evaluate, &ty_command_infer,  &ty_command_compile, &ty_command_cache,
    &ty_command_doctor,   &ty_command_perf,     &ty_command_server, &ty_command_job,     &ty_command_local,
    &ty_command_submit,   &ty_command_status,   &ty_command_logs,   &ty_command_stop,    &ty_command_list,
    &ty_command_describe, &ty_command_model,    &ty_command_data,   &ty_command_explain, &ty_command_version};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

/* ---- help ---- */

static void print_short_help(FILE *out)
{
    fputs("usage: trainyard COMMAND [arguments]\n\ncommands\n", out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-8s %-30s %s\n", commands[i]->name, commands[i]->words, commands[i]->summary);
    fputs("  help     [COMMAND | recipe | KEY]       say more; KEY: of a recipe, shuffle or optimizer.adamw.lr\n"
          "\nexamples\n"
          "  trainyard check model.onnx\n"
          "  trainyard plan train.yaml --data-dir=data --svg plan.svg\n"
          "  trainyard train train.yaml --data-dir=data --epochs=5\n",
          out);
}

static void print_page(const ty_command_row *c)
{
    printf("usage: trainyard %s %s%s\n\n%s\n", c->name, c->words, c->n_options ? " [options]" : "", c->summary);
    if (c->n_options)
        puts("\noptions");
    for (size_t i = 0; i < c->n_options; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", c->options[i].name, c->options[i].value ? " " : "",
                 c->options[i].value ? c->options[i].value : "");
        printf("  %-20s %s%s\n", left, c->options[i].help,
               c->options[i].repeats ? " (may be given several times)" : "");
    }
    if (c->page)
        printf("\n%s", c->page);
}

static int print_recipe_page(void)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    int rc = ty_recipe_help(&text);
    fputs(text.data, stdout);
    ty_buf_fini(&text);
    return rc < 0;
}

static const ty_command_row *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* A word that is none of the commands or, where keys are looked for too, of a recipe's. */
static int unknown_word(const char *word, bool or_key)
{
    ty_suggestion s = {.word = word};
    for (int i = 0; i < N_COMMANDS; i++)
        ty_suggest_offer(&s, commands[i]->name);
    ty_suggest_offer(&s, or_key ? "recipe" : "help");
    if (or_key)
        ty_recipe_offer_keys(&s);
    fprintf(stderr, "trainyard: there is no command \"%s\"%s\n", word, or_key ? ", and no key of a recipe" : "");
    if (s.best)
        fprintf(stderr, "help: did you mean \"%s\"?\n", s.best);
    else
        fprintf(stderr, "help: `trainyard help` lists the commands%s\n",
                or_key ? ", `trainyard help recipe` the keys" : "");
    return TY_EXIT_USAGE_ERROR;
}

/* A key of a recipe. */
static int print_key(const char *topic)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    int n = ty_recipe_explain(topic, &text);
    if (n > 0)
        fputs(text.data, stdout);
    ty_buf_fini(&text);
    return n > 0 ? 0 : unknown_word(topic, true);
}

static int print_help(const char *topic)
{
    if (!topic || strcmp(topic, "help") == 0) {
        print_short_help(stdout);
        return 0;
    }
    if (strcmp(topic, "recipe") == 0)
        return print_recipe_page();
    const ty_command_row *c = find_command(topic);
    if (!c)
        return print_key(topic);
    print_page(c);
    return 0;
}

/* ---- arguments ---- */

static int wrong(const ty_command_row *c, const char *message, const char *word)
{
    fprintf(stderr, "trainyard %s: %s%s%s%s\n", c->name, message, word ? " \"" : "", word ? word : "",
            word ? "\"" : "");
    return TY_EXIT_USAGE_ERROR;
}

static int wrong_option(const ty_command_row *c, const char *word)
{
    ty_suggestion s = {.word = word};
    for (size_t i = 0; i < c->n_options; i++)
        ty_suggest_offer(&s, c->options[i].name);
    wrong(c, "there is no option", word);
    if (s.best)
        fprintf(stderr, "help: did you mean \"%s\"?\n", s.best);
    else
        fprintf(stderr, "help: `trainyard %s --help` lists the options\n", c->name);
    return TY_EXIT_USAGE_ERROR;
}

static int find_option(const ty_command_row *c, const char *word, size_t len)
{
    for (size_t i = 0; i < c->n_options; i++)
        if (strlen(c->options[i].name) == len && memcmp(c->options[i].name, word, len) == 0)
            return (int)i;
    return -1;
}

/* A word that starts with "--". Returns how many words it took, or a negative exit status. */
static int take_option(const ty_command_row *c, char **argv, ty_arguments_given *g)
{
    const char *word = argv[0], *equals = strchr(word, '=');
    int at = find_option(c, word, equals ? (size_t)(equals - word) : strlen(word));
    if (at < 0 && c->takes_settings) {
        g->rest[g->n_rest++] = word;
        if (equals || !argv[1])
            return 1;
        g->rest[g->n_rest++] = argv[1];
        return 2;
    }
    if (at < 0)
        return -wrong_option(c, word);
    if (!c->options[at].value && equals)
        return -wrong(c, "this option takes no value:", word);
    if (!c->options[at].value) {
        g->value[at] = "";
        return 1;
    }
    const char *value = equals ? equals + 1 : argv[1];
    if (!value)
        return -wrong(c, "this option needs a value:", word);
    g->value[at] = value;
    if (c->options[at].repeats && g->n_repeated == TY_MAX_REPEATS)
        return -wrong(c, "too many of", word);
    if (c->options[at].repeats)
        g->repeated[g->n_repeated++] = value;
    return equals ? 1 : 2;
}

/* 0, or an exit status. */
static int parse(const ty_command_row *c, int argc, char **argv, ty_arguments_given *g)
{
    for (int i = 0; i < argc;) {
        bool is_option =
            (strncmp(argv[i], "--", 2) == 0 && argv[i][2]) || find_option(c, argv[i], strlen(argv[i])) >= 0;
        if (!is_option && g->n_words == TY_MAX_WORDS - 1)
            return wrong(c, "too many arguments", NULL);
        if (!is_option)
            g->words[g->n_words++] = argv[i++];
        else {
            int taken = take_option(c, argv + i, g);
            if (taken < 0)
                return -taken;
            i += taken;
        }
    }
    if (g->n_words > c->max_words)
        return wrong(c, "unexpected argument", g->words[c->max_words]);
    if (g->n_words < c->min_words) {
        wrong(c, "something is missing:", c->words);
        fprintf(stderr, "help: usage: trainyard %s %s\n", c->name, c->words);
        return TY_EXIT_USAGE_ERROR;
    }
    return 0;
}

static bool wants_json(const ty_command_row *c, const ty_arguments_given *g)
{
    for (size_t i = 0; i < c->n_options; i++)
        if (g->value[i] && strcmp(c->options[i].name, "--json") == 0)
            return true;
    return false;
}

static int run_parsed(const ty_command_row *c, const ty_arguments_given *g)
{
    ty_error err = {0};
    ty_arena a;
    ty_arena_init(&a);
    int status = ty_log_from_environment(&err) < 0 ? -1 : c->run(g, &a, &err);
    if (status < 0)
        status = ty_complain_of_command(&err, wants_json(c, g));
    ty_arena_fini(&a);
    return status;
}

static int run_command(const ty_command_row *c, int argc, char **argv)
{
    ty_arguments_given g = {.rest = calloc((size_t)argc + 1, sizeof(char *))};
    if (!g.rest)
        return wrong(c, "out of memory", NULL);
    int status = parse(c, argc, argv, &g);
    if (status == 0)
        status = run_parsed(c, &g);
    free(g.rest);
    if (fflush(stdout) != 0 && status == 0)
        status = 74;
    return status;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static bool computes(const char *name)
{
    static const char *const names[] = {"worker", "rank",    "train",  "run",  "compile",
                                        "plan",   "profile", "replay", "graph"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (computes(name))
        ty_threads_settle(argv);
    if (strcmp(name, "worker") == 0) /* the child of `train` */
        return ty_worker_run((const char *const *)argv + 2);
    if (strcmp(name, "rsh") == 0) /* what mpirun takes for a remote shell */
        return ty_remote_client(argc - 2, (const char *const *)argv + 2);
    if (strcmp(name, "rank") == 0) /* the worker's, of a job of several */
        return ty_worker_run_rank((const char *const *)argv + 2);
    if (argc < 2 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help(NULL);
    if (strcmp(name, "help") == 0)
        return print_help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0)
        name = "version";
    const ty_command_row *c = find_command(name);
    if (!c)
        return unknown_word(name, false);
    if (wants_help(argc - 2, argv + 2)) {
        print_page(c);
        return 0;
    }
    return run_command(c, argc - 2, argv + 2);
}
