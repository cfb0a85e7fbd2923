/* A tar archive into a folder of ours; whatever it holds, nothing may appear beside the folder. */
#include "entrypoint/unpack.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64], inner[96], archive[96];

static void make_folders(void)
{
    snprintf(root, sizeof root, "/tmp/trainyard-fuzz-unpack-XXXXXX");
    if (!mkdtemp(root))
        abort();
    snprintf(inner, sizeof inner, "%s/inner", root);
    snprintf(archive, sizeof archive, "%s/archive", root);
}

static void remove_folders(void)
{
    ty_file_remove_tree(root, NULL);
}

static int count_entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!root[0]) {
        make_folders();
        atexit(remove_folders);
    }
    FILE *f = fopen(archive, "wb");
    if (!f || mkdir(inner, 0755) < 0 || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
    ty_error err = {0};
    ty_unpack_knows(archive);
    if (ty_unpack(archive, inner, NULL, &err) < 0 && (err.code == TY_E_NONE || !err.message[0]))
        abort();
    if (count_entries(root) != 4) /* . .. inner archive */
        abort();
    ty_file_remove_tree(inner, NULL);
    return 0;
}
