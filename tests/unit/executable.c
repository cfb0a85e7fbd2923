/* base/executable.h on a mount that is noexec: shared objects are loaded, programs started, models written in C too. */
#define _GNU_SOURCE
#include "base/executable.h"

#include "base/file.h"
#include "compiler/compiler.h"
#include "entrypoint/script.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/ty-noexec-test-XXXXXX";
static const char *missing; /* why there is no such mount */

/* A mount of this process alone, which ends with it. */
static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", folder, "tmpfs", MS_NOEXEC, "size=64m") < 0)
        missing = strerror(errno);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    umount2(folder, MNT_DETACH);
    rmdir(folder);
    return 0;
}

static void needs_mount(void)
{
    if (!missing)
        return;
    print_message("skip: a noexec tmpfs cannot be mounted: %s\n", missing);
    skip();
}

static const char *write_file(const char *name, const char *text)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(ty_file_write(path, text, strlen(text), 0755, NULL), 0);
    return path;
}

static void the_mount_is_seen(void **state)
{
    (void)state;
    needs_mount();
    assert_true(ty_executable_is_forbidden(folder));
    assert_false(ty_executable_is_forbidden("/usr/bin/env"));
    assert_false(ty_executable_is_forbidden("/nonexistent"));
}

/* Two objects at once: each has its own descriptor and stays itself. */
static void objects_are_loaded(void **state)
{
    (void)state;
    char command[512], path[2][128];
    ty_shared_object o[2];
    needs_mount();
    for (int i = 0; i < 2; i++) {
        const char *source = write_file("f.c", i ? "int f(void) { return 2; }" : "int f(void) { return 1; }");
        snprintf(path[i], sizeof path[i], "%s/f%d.so", folder, i);
        snprintf(command, sizeof command, "cc -shared -fPIC -o %s %s", path[i], source);
        assert_int_equal(system(command), 0);
        assert_null(dlopen(path[i], RTLD_NOW)); /* so that this test can fail */
        assert_int_equal(ty_shared_object_open(path[i], &o[i], NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        int (*f)(void);
        void *found = dlsym(o[i].handle, "f");
        memcpy(&f, &found, sizeof f);
        assert_int_equal(f(), i + 1);
    }
    ty_shared_object_close(&o[0]);
    ty_shared_object_close(&o[1]);
    ty_shared_object_close(&o[1]); /* nothing twice */
    ty_error err = {0};
    assert_int_equal(ty_shared_object_open(write_file("text.so", "no object"), &o[0], &err), -1);
    assert_int_equal(err.code, TY_E_COMPILER);
}

static void programs_are_started(void **state)
{
    (void)state;
    needs_mount();
    write_file("train.c",
               "#include <string.h>\nint main(int n, char **v) { return n == 2 && !strcmp(v[1], \"x\") ? 7 : 1; }");
    const char *const args[] = {"x", NULL};
    int status;
    pid_t child = fork();
    if (child == 0) {
        ty_arena a;
        ty_command command;
        ty_error err = {0};
        int cannot = 0;
        ty_script script = {"train.c", folder, args};
        ty_arena_init(&a);
        setenv("TMPDIR", folder, 1);
        if (ty_script_prepare(&script, &a, &command, &err) == 0)
            ty_script_execute(&command, &cannot, &err);
        fprintf(stderr, "%s\n", err.message);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void models_in_c_are_opened(void **state)
{
    (void)state;
    needs_mount();
    const char *path = write_file("model.c", "#include <trainyard/model.h>\n"
                                             "void model(ty_net *net)\n"
                                             "{\n"
                                             "    ty_var x = ty_input(net, \"x\", \"f32[batch,4]\");\n"
                                             "    ty_output(net, \"y\", ty_linear(net, \"out\", x, 2));\n"
                                             "}\n");
    ty_model *m = NULL;
    ty_error err = {0};
    setenv("TMPDIR", folder, 1);
    if (ty_model_open(path, &m, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_model_n_outputs(m), 1);
    ty_model_free(m);
    unsetenv("TMPDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mount_is_seen),
        cmocka_unit_test(objects_are_loaded),
        cmocka_unit_test(programs_are_started),
        cmocka_unit_test(models_in_c_are_opened),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
