/* profile.c - see profile.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/profile.h"

#include "base/file.h"
#include "base/suggest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const ty_service ty_service_sagemaker = {"SageMaker", "sagemaker", "api.sagemaker", "api-fips.sagemaker", "SAGEMAKER"};
const ty_service ty_service_logs = {"CloudWatch Logs", "logs", "logs", "logs-fips", "CLOUDWATCH_LOGS"};
const ty_service ty_service_sts = {"STS", "sts", "sts", "sts-fips", "STS"};
const ty_service ty_service_iam = {"IAM", "iam", "iam", "iam-fips", "IAM"}; /* identity.c knows where it really is */
const ty_service ty_service_s3 = {"S3", "s3", "s3", "s3-fips", "S3"};

/* ---- partitions ---- */

/* By how a region begins; the last row takes all others. */
static const struct partition {
    const char *begins, *name, *domain, *console; /* NULL: not known */
} partitions[] = {
    {"cn-", "aws-cn", "amazonaws.com.cn", "console.amazonaws.cn"},
    {"us-gov-", "aws-us-gov", "amazonaws.com", "console.amazonaws-us-gov.com"},
    {"us-iso-", "aws-iso", "c2s.ic.gov", NULL},
    {"us-isob-", "aws-iso-b", "sc2s.sgov.gov", NULL},
    {"us-isof-", "aws-iso-f", "csp.hci.ic.gov", NULL},
    {"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk", NULL},
    {"eusc-", "aws-eusc", "amazonaws.eu", NULL},
    {"", "aws", "amazonaws.com", "console.aws.amazon.com"},
};

static const struct partition *partition_of(const char *region)
{
    const struct partition *p = partitions;
    while (strncmp(region, p->begins, strlen(p->begins)) != 0)
        p++;
    return p;
}

const char *ty_region_domain(const char *region)
{
    return partition_of(region)->domain;
}

const char *ty_region_partition(const char *region)
{
    return partition_of(region)->name;
}

const char *ty_region_console(const char *region)
{
    return partition_of(region)->console;
}

/* A region becomes part of a host name: nothing else may get in. */
bool ty_region_is_valid(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n < 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && text[0] != '-';
}

/* ---- files ---- */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The variable's path, or the file under the home folder; "~/" at its start is the home folder too. NULL: no home. */
static const char *path_of(ty_arena *arena, const char *variable, const char *otherwise)
{
    const char *path = from_environment(variable), *home = from_environment("HOME");
    if (!path)
        path = otherwise;
    if (strncmp(path, "~/", 2) != 0)
        return path;
    return home ? ty_arena_printf(arena, "%s/%s", home, path + 2) : NULL;
}

static int read_file(ty_arena *arena, const char *path, ty_ini *out, ty_error *err)
{
    ty_buf text;
    *out = (ty_ini){.name = path ? path : ""};
    if (!path || !ty_file_exists(path))
        return 0;
    ty_buf_init(&text, TY_INI_MAX_BYTES);
    int rc = ty_file_read(path, &text, err);
    if (rc == 0)
        rc = ty_ini_parse(arena, path, text.data, text.len, out, err);
    explicit_bzero(text.data, text.len);
    ty_buf_fini(&text);
    return rc;
}

/* ---- profiles ---- */

/* In the file config, "default" stands as it is, others behind "profile ", perhaps in quotes. */
static bool is_section_of(const char *section, const char *profile)
{
    size_t n = strlen(profile);
    if (strcmp(profile, "default") == 0 && strcmp(section, "default") == 0)
        return true;
    if (strncmp(section, "profile", 7) != 0 || !isspace((unsigned char)section[7]))
        return false;
    section += 7 + strspn(section + 7, " \t");
    if (section[0] == '"' || section[0] == '\'')
        return strncmp(section + 1, profile, n) == 0 && section[n + 1] == section[0] && !section[n + 2];
    return strcmp(section, profile) == 0;
}

static const char *find_in_config(const ty_ini *ini, const char *profile, const char *key, bool *has_section)
{
    for (size_t i = 0; i < ini->n; i++) {
        if (!is_section_of(ini->at[i].section, profile))
            continue;
        if (has_section)
            *has_section = true;
        if (key && ini->at[i].key && strcmp(ini->at[i].key, key) == 0)
            return ini->at[i].value;
    }
    return NULL;
}

const char *ty_profile_get(const ty_profile *p, const char *profile, const char *key)
{
    profile = profile ? profile : p->name;
    const char *value = ty_ini_get(&p->credentials, profile, key);
    return value ? value : find_in_config(&p->config, profile, key, NULL);
}

bool ty_profile_has(const ty_profile *p, const char *profile)
{
    bool found = ty_ini_has(&p->credentials, profile);
    find_in_config(&p->config, profile, NULL, &found);
    return found;
}

static int refuse_profile(const ty_profile *p, ty_error *err)
{
    ty_suggestion s = {.word = p->name};
    for (size_t i = 0; i < p->credentials.n; i++)
        if (!p->credentials.at[i].key)
            ty_suggest_offer(&s, p->credentials.at[i].section);
    for (size_t i = 0; i < p->config.n; i++)
        if (!p->config.at[i].key && strncmp(p->config.at[i].section, "profile ", 8) == 0)
            ty_suggest_offer(&s, p->config.at[i].section + 8);
    ty_error_set(err, TY_E_CREDENTIALS, "there is no profile \"%s\" in %s or %s", p->name, p->config.name,
                 p->credentials.name);
    return s.best
               ? ty_error_help(err, "did you mean \"%s\"?", s.best)
               : ty_error_help(err, "name one with AWS_PROFILE, or make it with `aws configure --profile %s`", p->name);
}

static int settle_region(ty_profile *p, const char *wanted, ty_error *err)
{
    p->region = wanted ? wanted : from_environment("AWS_REGION");
    if (!p->region)
        p->region = from_environment("AWS_DEFAULT_REGION");
    if (!p->region)
        p->region = ty_profile_get(p, NULL, "region");
    if (p->region && !ty_region_is_valid(p->region))
        return ty_error_set(err, TY_E_CONFIG, "\"%s\" is no region; regions look like eu-west-1", p->region);
    return 0;
}

int ty_profile_read(ty_arena *arena, const char *wanted_profile, const char *wanted_region, ty_profile *out,
                    ty_error *err)
{
    const char *named = wanted_profile ? wanted_profile : from_environment("AWS_PROFILE");
    if (!named)
        named = from_environment("AWS_DEFAULT_PROFILE");
    *out = (ty_profile){.name = named ? named : "default", .is_given = wanted_profile != NULL};
    const char *config = path_of(arena, "AWS_CONFIG_FILE", "~/.aws/config");
    const char *credentials = path_of(arena, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
    if (read_file(arena, config, &out->config, err) < 0 || read_file(arena, credentials, &out->credentials, err) < 0)
        return -1;
    if (named && !ty_profile_has(out, named))
        return refuse_profile(out, err);
    return settle_region(out, wanted_region, err);
}

int ty_profile_region(const ty_profile *p, const char **region, ty_error *err)
{
    *region = p->region;
    if (p->region)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "no region is known");
    return ty_error_help(err, "give --region, AWS_REGION, or a line \"region = ...\" in profile \"%s\" of %s", p->name,
                         p->config.name);
}

/* ---- addresses ---- */

static bool is_on(const char *value)
{
    return value && strcasecmp(value, "true") == 0;
}

/* [services NAME] of the config file, when the profile says "services = NAME". */
static const char *from_services(const ty_profile *p, const ty_service *service, ty_arena *arena)
{
    const char *name = ty_profile_get(p, NULL, "services");
    if (!name)
        return NULL;
    char *key = ty_arena_printf(arena, "%s.endpoint_url", service->variable);
    for (char *c = key; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return ty_ini_get(&p->config, ty_arena_printf(arena, "services %s", name), key);
}

static const char *own_endpoint(const ty_profile *p, const ty_service *service, ty_arena *arena)
{
    const char *ignore = from_environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    if (is_on(ignore ? ignore : ty_profile_get(p, NULL, "ignore_configured_endpoint_urls")))
        return NULL;
    const char *url = from_environment(ty_arena_printf(arena, "AWS_ENDPOINT_URL_%s", service->variable));
    if (!url)
        url = from_environment("AWS_ENDPOINT_URL");
    if (!url)
        url = from_services(p, service, arena);
    return url ? url : ty_profile_get(p, NULL, "endpoint_url");
}

static bool begins_with_host(const char *url, const char *host)
{
    size_t n = strlen(host);
    return strncmp(url, host, n) == 0 && (url[n] == 0 || url[n] == ':' || url[n] == '/');
}

/* A request carries a session token, and a stranger who reads it on the way is who we are for an hour. */
static int check_endpoint(const char *url, ty_error *err)
{
    if (strncmp(url, "https://", 8) == 0 && url[8])
        return 0;
    if (strncmp(url, "http://", 7) != 0 || !url[7])
        return ty_error_set(err, TY_E_CONFIG, "an endpoint must begin with https://, but \"%.200s\" was given", url);
    if (begins_with_host(url + 7, "127.0.0.1") || begins_with_host(url + 7, "localhost") ||
        begins_with_host(url + 7, "[::1]") || is_on(from_environment("TRAINYARD_PLAIN_HTTP")))
        return 0;
    ty_error_set(err, TY_E_CONFIG, "%.200s would send tokens over the network as plain text", url);
    return ty_error_help(err, "use https://, or set TRAINYARD_PLAIN_HTTP=true if that network is yours alone");
}

int ty_profile_endpoint(const ty_profile *p, const ty_service *service, const char *region, ty_arena *arena,
                        const char **url, bool *is_own, ty_error *err)
{
    const char *own = own_endpoint(p, service, arena);
    *is_own = own != NULL;
    if (!own) {
        const char *fips = from_environment("AWS_USE_FIPS_ENDPOINT");
        bool is_fips = is_on(fips ? fips : ty_profile_get(p, NULL, "use_fips_endpoint"));
        *url = ty_arena_printf(arena, "https://%s.%s.%s", is_fips ? service->fips_host : service->host, region,
                               ty_region_domain(region));
        return 0;
    }
    size_t n = strlen(own);
    while (n > 0 && own[n - 1] == '/')
        n--;
    *url = ty_arena_strndup(arena, own, n);
    return check_endpoint(*url, err);
}
