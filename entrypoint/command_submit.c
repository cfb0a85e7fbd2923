/* command_submit.c - `trainyard submit FILE --dry-run`: all that can be known before a service is asked. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/quantity.h"
#include "entrypoint/command.h"
#include "entrypoint/managed.h"
#include "estimator_spec/pack.h"
#include "estimator_spec/request.h"

#include <stdio.h>

enum { DRY_RUN, ARCHIVE, JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [DRY_RUN] = {"--dry-run", NULL, "check everything that can be checked here, print the request, send nothing",
                 false},
    [ARCHIVE] = {"--archive", "FILE", "also write the packed source there", false},
    [JSON] = {"--json", NULL, "the request alone, on one line of stdout", false},
};

static int pack(const ty_jobspec *job, const char *archive, bool quiet, ty_arena *a, ty_error *err)
{
    ty_packed_file *files;
    ty_buf bytes;
    int n;
    char size[32], hex[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    if (!job->source.is_packed)
        return 0;
    if (ty_pack_list(job, a, &files, &n, err) < 0)
        return -1;
    ty_buf_init(&bytes, TY_PACK_MAX_BYTES);
    int rc = ty_pack_write(files, n, &bytes, err);
    if (rc == 0)
        rc = ty_sha256_bytes(bytes.data, bytes.len, digest, err);
    if (rc == 0 && archive)
        rc = ty_file_write(archive, bytes.data, bytes.len, 0644, err);
    if (rc == 0 && !quiet) {
        for (int i = 0; i < n; i++)
            fprintf(stderr, "pack    %10llu  %s%s\n", (unsigned long long)files[i].n_bytes, files[i].name,
                    files[i].is_folder ? "/" : "");
        fprintf(stderr, "upload  %10s  %s\n        sha256 %s\n", ty_bytes_text(bytes.len, size, sizeof size),
                job->source.uri, ty_sha256_hex(digest, hex));
    }
    ty_buf_fini(&bytes);
    return rc;
}

static int print_request(const ty_jobspec *job, bool on_one_line, ty_arena *a, ty_error *err)
{
    ty_doc body;
    ty_buf out;
    if (ty_jobspec_request(job, a, &body, err) < 0)
        return -1;
    ty_buf_init(&out, 1 << 24);
    if (on_one_line)
        ty_json_add_doc(&out, &body, TY_JSON_COMPACT);
    else
        ty_json_add_lines(&out, &body, 0);
    int rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the request does not fit") : 0;
    if (rc == 0)
        puts(out.data);
    ty_buf_fini(&out);
    return rc;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_jobspec job;
    bool quiet = given->value[JSON] != NULL;
    if (!given->value[DRY_RUN]) {
        ty_error_set(err, TY_E_USAGE,
                     "`submit` needs --dry-run: this version checks and prints a request, and sends none");
        return ty_error_help(err,
                             "aws sagemaker create-training-job --cli-input-json takes what --dry-run --json prints");
    }
    if (ty_managed_load(given->words[0], a, &job, err) < 0)
        return -1;
    if (!quiet)
        ty_managed_warn(&job);
    if (pack(&job, given->value[ARCHIVE], quiet, a, err) < 0)
        return -1;
    return print_request(&job, quiet, a, err);
}

const ty_command_row ty_command_submit = {
    "submit",
    "FILE --dry-run",
    "check a job file, pack its source, and print the request",
    "The request (CreateTrainingJob) goes to stdout; what would be packed, and warnings, to stderr.\n\n"
    "    trainyard submit job.yaml --dry-run\n",
    options,
    N_OPTIONS,
    1,
    1,
    false,
    false,
    run};
