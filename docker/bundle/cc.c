/* cc.c - the bundle's C compiler, wherever the bundle lies: starts the gcc beside it with that gcc's own root.
 *
 * Debian's gcc finds cc1 and its headers by its own place. What it looks for in the system is told here: libc's headers
 * and start-up objects (--sysroot), assembler and linker (-B), and the libraries that cc1, as and ld are linked with,
 * which lie among the bundle's others. Its files are Debian's, byte for byte.
 *
 *     BUNDLE/cc/bin/cc        this program
 *     BUNDLE/cc/usr/bin/gcc   and the rest of that root
 *     BUNDLE/lib              libraries
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, N_OWN = 3 };

/* The folder that holds bin/ of this program, or NULL. */
static const char *find_root(void)
{
    static char root[PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", root, sizeof root - 1);
    root[n > 0 ? n : 0] = 0;
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(root, '/');
        if (!slash)
            return NULL;
        *slash = 0;
    }
    return root;
}

/* In front of what is there: the bundle's libraries are the ones that its gcc was made with. */
static int lead_libraries(const char *root)
{
    static char path[8 * PATH_BYTES];
    const char *before = getenv("LD_LIBRARY_PATH");
    int n = snprintf(path, sizeof path, "%s/../lib%s%s", root, before && *before ? ":" : "", before ? before : "");
    return n < (int)sizeof path ? setenv("LD_LIBRARY_PATH", path, 1) : -1;
}

int main(int argc, char **argv)
{
    char gcc[PATH_BYTES + 16], sysroot[PATH_BYTES + 16], programs[PATH_BYTES + 16];
    const char *root = find_root(), **args = calloc((size_t)argc + N_OWN + 1, sizeof *args);
    if (!root || !args || lead_libraries(root) < 0) {
        fprintf(stderr, "cc: cannot tell where this program lies (/proc/self/exe)\n");
        return 1;
    }
    snprintf(gcc, sizeof gcc, "%s/usr/bin/gcc", root);
    snprintf(sysroot, sizeof sysroot, "--sysroot=%s", root);
    snprintf(programs, sizeof programs, "-B%s/usr/bin/", root);
    unsetenv("GCC_EXEC_PREFIX"); /* these tell of another gcc's parts */
    unsetenv("COMPILER_PATH");
    args[0] = gcc;
    args[1] = sysroot;
    args[2] = programs;
    for (int i = 1; i < argc; i++)
        args[N_OWN + i - 1] = argv[i];
    execv(gcc, (char **)args);
    fprintf(stderr, "cc: cannot start \"%s\": %s\n", gcc, strerror(errno));
    return 1;
}
