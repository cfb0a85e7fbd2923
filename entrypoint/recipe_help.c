/* recipe_help.c - the tables of a recipe as a page, and a loaded recipe as a list of settings. */
#include "entrypoint/recipe_keys.h"

#include <string.h>

static const char head[] =
    "train.yaml: what to train, on what, and how.\n"
    "\n"
    "    model: model.onnx\n"
    "    inputs: {x: image}\n"
    "    loss: {softmax_cross_entropy: {logits: logits, labels: label}}\n"
    "    optimizer: {adamw: {lr: 1e-3, weight_decay: 0.01}}\n"
    "    schedule: {warmup_cosine: {warmup_steps: 100, final_lr: 1e-5}}\n"
    "    batch_size: 64\n"
    "    epochs: 20\n"
    "    data:\n"
    "      train:\n"
    "        channel: train\n"
    "        format: csv\n"
    "        fields: {image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}, label: {columns: 64, type: int64}}\n"
    "      validation: {channel: test, fields: same}\n"
    "    metrics: [accuracy]\n"
    "    checkpoint: {every: 1 epoch, keep: 3}\n"
    "    seed: 1\n"
    "\n"
    "Any key can be set from outside by its dotted name, as a hyperparameter of the job or as an argument:\n"
    "    trainyard train train.yaml --optimizer.adamw.lr=3e-4 --epochs=5\n"
    "Arguments win over hyperparameters, hyperparameters over the file. --origin shows where each value came from.\n"
    "\n"
    "Where a job's recipe is looked for: the program named train.yaml or any .yaml (sagemaker_program), then the\n"
    "hyperparameter `recipe`, a path relative to the code folder or to the channels config, model, train; then "
    "train.yaml\n"
    "in the code folder and in those channels. The model file is relative to the recipe.\n";

static int add_section(const recipe_section *s, ty_buf *out)
{
    ty_buf_addf(out, "\n%s%s%s\n", s->path, *s->path ? ": " : "", s->help);
    return ty_bind_help(s->rows, s->n_rows, 2, out);
}

static int add_choice(const recipe_choice *c, ty_buf *out)
{
    ty_buf_addf(out, "\n%s: %s. One of\n", c->key, c->help);
    for (size_t i = 0; i < c->n_kinds; i++) {
        ty_buf_addf(out, "  %s: %s\n", c->kinds[i].name, c->kinds[i].help);
        if (c->kinds[i].n_rows > 0 && ty_bind_help(c->kinds[i].rows, c->kinds[i].n_rows, 6, out) < 0)
            return -1;
    }
    return 0;
}

int ty_recipe_help(ty_buf *out)
{
    ty_buf_adds(out, head);
    add_section(&ty_recipe_top_section, out);
    add_section(&ty_recipe_data_section, out);
    add_section(&ty_recipe_field_section, out);
    add_section(&ty_recipe_image_section, out);
    add_section(&ty_recipe_jitter_section, out);
    add_section(&ty_recipe_audio_section, out);
    add_choice(&ty_recipe_loss_choice, out);
    add_choice(&ty_recipe_optimizer_choice, out);
    add_choice(&ty_recipe_schedule_choice, out);
    add_section(&ty_recipe_warmup_section, out);
    add_choice(&ty_recipe_clip_choice, out);
    add_section(&ty_recipe_ema_section, out);
    add_section(&ty_recipe_lora_section, out);
    add_choice(&ty_recipe_metric_choice, out);
    add_section(&ty_recipe_checkpoint_section, out);
    add_section(&ty_recipe_early_section, out);
    add_section(&ty_recipe_export_section, out);
    add_section(&ty_recipe_distributed_section, out);
    ty_buf_adds(out, "\naliases (* is the kind chosen there)\n");
    for (size_t i = 0; i < ty_recipe_n_aliases; i++)
        ty_buf_addf(out, "  %-28s %s\n", ty_recipe_aliases[i].alias, ty_recipe_aliases[i].path);
    return out->failed ? -1 : 0;
}

const char *ty_recipe_origin(const ty_recipe *r, const char *key)
{
    for (int i = 0; i < r->n_settings; i++)
        if (strcmp(r->settings[i].key, key) == 0)
            return r->settings[i].origin;
    return NULL;
}

int ty_recipe_print_origin(const ty_recipe *r, ty_buf *out)
{
    int key_width = 0, value_width = 0;
    for (int i = 0; i < r->n_settings; i++) {
        int key_len = (int)strlen(r->settings[i].key), value_len = (int)strlen(r->settings[i].value);
        key_width = key_len > key_width ? key_len : key_width;
        value_width = value_len > value_width && value_len <= 40 ? value_len : value_width;
    }
    for (int i = 0; i < r->n_settings; i++)
        ty_buf_addf(out, "%-*s  %-*s  %s\n", key_width, r->settings[i].key, value_width, r->settings[i].value,
                    r->settings[i].origin);
    return out->failed ? -1 : 0;
}
