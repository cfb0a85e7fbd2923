/* cmodel_kept.c - which models in C leave their code in a folder: those whose text is all that decides it, of any size;
 * and that nothing old stays there. Jobs with such folders: tests/entrypoint/cache.sh.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "compiler/import/cmodel_kept.h"
#include "tests/unit/cmodel_file.h"

#define WIDE "enum { WIDTH = 4 };\n"
#define BODY                                                                   \
    "void model(ty_net *net)\n"                                                \
    "{\n"                                                                      \
    "    ty_var x = ty_input(net, \"x\", \"f32[batch,4]\");\n"                 \
    "    ty_output(net, \"y\", ty_linear(net, \"plasma.embed\", x, WIDTH));\n" \
    "}\n"

static int set_up(void **state)
{
    ty_log_set_level(TY_LOG_ERROR);
    return make_folder(state) < 0 ? -1 : ty_file_mkdirs(in_folder("kept"), 0755, NULL);
}

static void keep(const ty_model *m)
{
    ty_error err = {0};
    if (ty_model_keep(m, in_folder("kept"), &err) < 0)
        fail_msg("%s", err.message);
}

static void keep_text(const char *text)
{
    ty_model *m = open_text(text);
    keep(m);
    ty_model_free(m);
}

static bool is_kept(void)
{
    bool text = ty_file_exists(in_folder("kept/model.txt")), object = ty_file_exists(in_folder("kept/model.so"));
    assert_int_equal(text, object);
    return text;
}

/* Headers of the system and ours do not count, nor do words of comments and names. What was opened from a folder can be
 * kept in another, and in that one. */
static void text_alone_is_kept(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_model *m;
    keep_text(HEAD
              "/* #include \"width.h\" */\n# include <math.h>\n#define LONG \\\n  4\nenum { WIDTH = LONG };\n" BODY);
    assert_true(is_kept());
    for (int i = 0; i < 2; i++) {
        if (ty_model_open_kept(in_folder("model.c"), in_folder("kept"), &m, &err) < 0)
            fail_msg("%s", err.message);
        if (i == 0)
            ty_file_remove_tree(in_folder("kept"), NULL);
        assert_int_equal(ty_file_mkdirs(in_folder("kept"), 0755, NULL), 0);
        keep(m);
        assert_true(is_kept());
        ty_model_free(m);
    }
}

/* Each is written so that who looks for lines of #include "..." sees none. */
static void who_reads_files_is_not(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "/* here */ #include \"width.h\"\n",
        "%: include \"width.h\"\n",
        "#inc\\\nlude \"width.h\"\n",
        "#define FILE \"width.h\"\n#include FILE\n",
        "#include <%s/width.h>\n",
        WIDE "__asm__(\".pushsection .rodata\\n.incbin \\\"%s/width.h\\\"\\n.popsection\");\n"};
    char text[2000];
    write_text("width.h", WIDE);
    keep_text(HEAD WIDE BODY);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *at = strstr(heads[i], "%s");
        int n = at ? (int)(at - heads[i]) : (int)strlen(heads[i]);
        snprintf(text, sizeof text, "%s%.*s%s%s%s", HEAD, n, heads[i], at ? folder : "", at ? at + 2 : "", BODY);
        write_text("kept/model.txt", "of another source");
        write_text("kept/model.so", "likewise");
        keep_text(text);
        if (is_kept())
            fail_msg("kept: %s", text);
    }
}

/* What the compilers of these tests do not know yet, and words that are nothing of the kind. */
static void files_in_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool reads;
    } rows[] = {
        {"#embed \"x\"", true},
        {"static const char b[] = {\n# /* so */ embed <x>\n};", true},
        {"%: \\\n embed <x>", true},
        {"#em\\\nbed <x>", true},
        {"asm volatile(\"\");", true},
        {"int a; __asm(\"\")", true},
        {"__as\\ \nm__(\"\")", true},
        {"#include <../../home/width.h>", true},
        {"#include <sys/../../home/width.h>", true},
        {"embed", false},
        {"int embed, embedding; ty_linear(net, \"wte.embed\", x, 2);", false},
        {"plasma _asm asm_ #embedding", false},
        {"int f(const char *format, ...); /* ../x */", false},
        {"", false},
        {"\\", false},
        {"\\\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_buf source;
        ty_buf_init(&source, 1000);
        ty_buf_adds(&source, rows[i].text);
        if (cmodel_may_read_files(&source) != rows[i].reads)
            fail_msg("%s", rows[i].text);
        ty_buf_fini(&source);
    }
}

/* In the compiler's list of what it has read such names are written otherwise. */
static void temporary_files_anywhere(void **state)
{
    (void)state;
    static const char *const names[] = {"a b", "#1", "$HOME", "a$", "a\\"};
    const char *found = getenv("TMPDIR");
    char *before = found ? strdup(found) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(ty_file_mkdirs(in_folder(names[i]), 0755, NULL), 0);
        setenv("TMPDIR", in_folder(names[i]), 1);
        keep_text(HEAD WIDE BODY);
        if (!is_kept())
            fail_msg("not with temporary files in %s", names[i]);
        unlink(in_folder("kept/model.txt"));
        unlink(in_folder("kept/model.so"));
    }
    before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR");
    free(before);
}

/* Code with 65 MiB of numbers in it. */
static void any_size_is_kept(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_model *m;
    keep_text(HEAD "__attribute__((used)) static const char numbers[65 << 20] = {1};\n" WIDE BODY);
    assert_true(is_kept());
    if (ty_model_open_kept(in_folder("model.c"), in_folder("kept"), &m, &err) < 0)
        fail_msg("%s", err.message);
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_alone_is_kept, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(who_reads_files_is_not, set_up, remove_folder),
        cmocka_unit_test(files_in_text),
        cmocka_unit_test_setup_teardown(temporary_files_anywhere, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(any_size_is_kept, set_up, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
