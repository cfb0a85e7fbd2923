/* Fuzz: SavedModel folders. The input is saved_model.pb; the checkpoint beside it is always the same. What can be
 * opened is imported, both as a model that is differentiated and as one that trains itself. */
#include "base/file.h"
#include "tests/fuzz/bundle.h"
#include "tests/fuzz/signature.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/ty-savedmodel-XXXXXX";

static void path_of(const char *name, char *out, size_t n)
{
    snprintf(out, n, "%s/%s", folder, name);
}

static void put(const char *name, const void *bytes, size_t n)
{
    char path[128];
    path_of(name, path, sizeof path);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes, 1, n, out) != n || fclose(out) != 0)
        abort();
}

static void remove_folder(void)
{
    ty_file_remove_tree(folder, NULL);
}

static void make_folder(void)
{
    char path[128];
    if (!mkdtemp(folder))
        abort();
    atexit(remove_folder);
    path_of("variables", path, sizeof path);
    ty_file_mkdirs(path, 0700, NULL);
    put("variables/variables.index", bundle_index, sizeof bundle_index);
    put("variables/variables.data-00000-of-00001", bundle_data, sizeof bundle_data);
}

static void read_with(const tf_options *opt)
{
    tf_file *f;
    ty_error err = {0};
    if (tf_open(folder, opt, &f, &err) < 0) {
        if (!strstr(err.place, folder) || !err.message[0])
            abort();
        return;
    }
    signature_import(f, tf_chosen_signature(f), false);
    if (tf_train_signature(f))
        signature_import(f, tf_train_signature(f), true);
    tf_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static bool is_made;
    if (!is_made)
        make_folder();
    is_made = true;
    put("saved_model.pb", data, n);
    read_with(NULL);
    read_with(&(tf_options){.train_signature = "train"});
    return 0;
}
