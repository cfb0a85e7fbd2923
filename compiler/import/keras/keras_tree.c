/* keras_tree.c - from a configuration to a tree of layers.
 *
 * What the configuration says of a layer: {"module", "class_name", "config", "registered_name", "build_config"}; legacy
 * files have class_name and config alone. Sources: keras/src/saving/serialization_lib.py, and saving_lib.py for the
 * groups of a weights file.
 */
#include "compiler/import/keras/keras_walk.h"

#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- the table ----------------------------------------------------------------------------------------------------
 */

#define KERAS_LAYER(class_name, masks, create, call, arg) \
    void keras_create_##create(keras_call *c);            \
    void keras_call_##call(keras_call *c);
#include "compiler/import/keras/keras_layers.def"
#undef KERAS_LAYER

void keras_create_none(keras_call *c)
{
    (void)c;
}

static const keras_row tree_rows[] = {
#define KERAS_LAYER(class_name, masks, create, call, arg) \
    {#class_name, KERAS_MASK_##masks, keras_create_##create, keras_call_##call, arg},
#include "compiler/import/keras/keras_layers.def"
#undef KERAS_LAYER
};
enum { TREE_N_ROWS = sizeof tree_rows / sizeof tree_rows[0] };

const keras_row *keras_find_row(const char *class_name)
{
    for (int i = 0; i < TREE_N_ROWS; i++)
        if (strcmp(tree_rows[i].class_name, class_name) == 0)
            return &tree_rows[i];
    return NULL;
}

static const char *tree_suggest(const char *class_name)
{
    ty_suggestion s = {.word = class_name};
    for (int i = 0; i < TREE_N_ROWS; i++)
        ty_suggest_offer(&s, tree_rows[i].class_name);
    return s.best;
}

/* ---- words --------------------------------------------------------------------------------------------------------
 */

const char *keras_string(const ty_doc *d)
{
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

/* The two substitutions of keras/src/utils/naming.py: an underscore before a capital that small letters follow, then
 * between a small letter and a capital. */
static size_t tree_split_words(const char *s, char *out)
{
    size_t n = 0;
    while (*s) {
        out[n++] = *s++;
        if (isupper((unsigned char)s[0]) && islower((unsigned char)s[1])) {
            out[n++] = '_';
            out[n++] = *s++;
            while (islower((unsigned char)*s))
                out[n++] = *s++;
        }
    }
    return n;
}

const char *keras_snake_case(ty_arena *a, const char *class_name)
{
    if (strcmp(class_name, "GroupQueryAttention") == 0) /* its public name; files count by the Python class */
        class_name = "GroupedQueryAttention";
    size_t len = strlen(class_name), n = 0;
    char *words = ty_arena_alloc(a, 2 * len + 1), *out = ty_arena_alloc(a, 4 * len + 1),
         *plain = ty_arena_alloc(a, len + 1);
    for (size_t i = 0; i < len; i++)
        if (isalnum((unsigned char)class_name[i]) || class_name[i] == '_')
            plain[n++] = class_name[i];
    plain[n] = 0;
    size_t n_words = tree_split_words(plain, words);
    n = 0;
    for (size_t i = 0; i < n_words; i++) {
        out[n++] = (char)tolower((unsigned char)words[i]);
        if (islower((unsigned char)words[i]) && i + 1 < n_words && isupper((unsigned char)words[i + 1])) {
            out[n++] = '_';
            out[n++] = (char)tolower((unsigned char)words[++i]);
        }
    }
    out[n] = 0;
    return out;
}

bool keras_read_shape(const ty_doc *d, int *rank, int64_t *dim)
{
    if (!d || d->kind != TY_DOC_LIST || d->n_items > TY_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < d->n_items; i++) {
        const ty_doc *item = ty_doc_at(d, i);
        if (item->kind != TY_DOC_NULL && (item->kind != TY_DOC_INT || item->integer < 0))
            return false;
        dim[i] = item->kind == TY_DOC_NULL ? -1 : item->integer;
    }
    *rank = (int)d->n_items;
    return true;
}

/* ---- faults -------------------------------------------------------------------------------------------------------
 */

void keras_faults_add(keras_faults *f, const ty_error *err)
{
    if (f->n < KERAS_MAX_FAULTS)
        f->at[f->n++] = *err;
    f->n_all++;
}

int keras_faults_result(const keras_faults *f, ty_error *err)
{
    if (f->n_all == 0)
        return 0;
    if (!err)
        return -1;
    *err = f->at[0];
    if (f->n_all > 1)
        ty_error_detail(err, "note: %d more fault%s; `trainyard check` lists them", f->n_all - 1,
                        f->n_all > 2 ? "s" : "");
    return -1;
}

static void tree_fault(ty_keras *m, const keras_layer *layer, ty_code code, const char *help, const char *message)
{
    ty_error err = {0};
    ty_error_set(&err, code, "%s", message);
    ty_error_at(&err, "%s: layer \"%.120s\" (%.60s)", m->file.path, layer->path, layer->class_name);
    if (help)
        ty_error_help(&err, "%s", help);
    keras_faults_add(&m->faults, &err);
}

/* ---- which class --------------------------------------------------------------------------------------------------
 */

static bool tree_begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static bool tree_is_keras_module(const char *module)
{
    return tree_begins(module, "keras") || tree_begins(module, "tf_keras") || tree_begins(module, "tensorflow.keras") ||
           tree_begins(module, "tensorflow.python.keras");
}

static bool tree_is_operation_module(const char *module)
{
    return tree_begins(module, "keras.src.ops") || tree_begins(module, "keras.ops") ||
           tree_begins(module, "keras.src.activations") || tree_begins(module, "keras.src.random");
}

/* "Package>Class": a class of the user's, also where it was defined in the main program (module null). */
static bool tree_is_registered(const char *registered)
{
    return registered && strchr(registered, '>');
}

/* A class that we do not know, in the words of whoever wrote the model. */
static void tree_refuse(ty_keras *m, const keras_layer *layer, const char *module, const char *registered)
{
    char text[400];
    const char *near = tree_suggest(layer->class_name), *help = NULL;
    if (strcmp(layer->class_name, "Lambda") == 0) {
        snprintf(text, sizeof text, "a Lambda layer holds Python code, which is not run");
        help = "write what it does with operations of keras.ops, or as a layer of Keras, and save the model again";
    } else if (strcmp(layer->class_name, "TFOpLambda") == 0 || strcmp(layer->class_name, "SlicingOpLambda") == 0) {
        snprintf(text, sizeof text,
                 "a TensorFlow operation called on a Keras 2 tensor, which Keras 3 does not load either");
        help = "use layers (Add, Reshape, Rescaling ...) in its place, or export a SavedModel or an ONNX file";
    } else if ((module && !tree_is_keras_module(module)) || tree_is_registered(registered)) {
        snprintf(text, sizeof text, "unknown custom class %.100s (%s%.80s%s%.100s): its code is not in the file",
                 layer->class_name, module ? "module " : "", module ? module : "of the user's own",
                 registered ? ", registered as " : "", registered ? registered : "");
        help = "bring it in C (recipe key `layers`), or build it of Keras' own layers, or export a SavedModel or ONNX";
    } else {
        snprintf(text, sizeof text, "unknown %s class %.100s%s%.60s%s",
                 module && tree_is_operation_module(module) ? "operation" : "layer", layer->class_name,
                 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
        help = "export the model as a SavedModel or an ONNX file";
    }
    tree_fault(m, layer, TY_E_UNSUPPORTED, help, text);
}

static bool tree_is_net(const char *class_name)
{
    return strcmp(class_name, "Sequential") == 0 || strcmp(class_name, "Functional") == 0 ||
           strcmp(class_name, "Model") == 0;
}

static void tree_check_policy(ty_keras *m, keras_layer *layer)
{
    const char *name = keras_policy_name(layer->config), *help;
    char text[160];
    if (!name || keras_policy_ok(name, &help))
        return;
    snprintf(text, sizeof text, "the layer is of policy %.80s", name);
    tree_fault(m, layer, TY_E_UNSUPPORTED, help, text);
    layer->what = KERAS_IS_UNKNOWN;
}

static void tree_classify(ty_keras *m, keras_layer *layer, const char *module, const char *registered)
{
    bool is_ours = (!module || tree_is_keras_module(module)) && !tree_is_registered(registered);
    if (keras_find_custom(m, layer)) {
        layer->what = KERAS_IS_ROW;
    } else if (module && tree_is_operation_module(module)) {
        layer->op = keras_find_op(layer->class_name, module);
        layer->what = layer->op ? KERAS_IS_OPERATION : KERAS_IS_UNKNOWN;
    } else if (is_ours && tree_is_net(layer->class_name)) {
        layer->what = KERAS_IS_NET;
    } else if (is_ours && strcmp(layer->class_name, "InputLayer") == 0) {
        layer->what = KERAS_IS_INPUT;
    } else if (is_ours) {
        layer->row = keras_find_row(layer->class_name);
        layer->what = layer->row ? KERAS_IS_ROW : KERAS_IS_UNKNOWN;
    }
    if (layer->what == KERAS_IS_UNKNOWN)
        tree_refuse(m, layer, module, registered);
    else if (layer->what == KERAS_IS_ROW)
        tree_check_policy(m, layer);
}

/* ---- layers -------------------------------------------------------------------------------------------------------
 */

static bool tree_is_sequential(const keras_layer *layer)
{
    return layer->what == KERAS_IS_NET && strcmp(layer->class_name, "Sequential") == 0;
}

/* Layers of a Functional are built before it is: its name is not in the paths of their variables. */
static const char *tree_path(const ty_keras *m, ty_arena *a, const keras_layer *parent, const char *name)
{
    bool is_inside = parent && parent != m->root && (parent->what != KERAS_IS_NET || tree_is_sequential(parent));
    return is_inside ? ty_arena_printf(a, "%s/%s", parent->path, name) : name;
}

static const char *tree_origin(const ty_keras *m, ty_arena *a, const keras_layer *parent, const char *name)
{
    const char *path = name;
    for (; parent && parent != m->root; parent = parent->parent)
        path = ty_arena_printf(a, "%s/%s", parent->name, path);
    return path;
}

static int tree_depth(const keras_layer *layer)
{
    int depth = 0;
    for (; layer; layer = layer->parent)
        depth++;
    return depth;
}

static const char *tree_name(ty_keras *m, const ty_doc *serialized, const char *class_name, const char *name)
{
    const char *own = keras_string(ty_doc_find(ty_doc_find(serialized, "config"), "name"));
    if (!name)
        name = keras_string(ty_doc_find(serialized, "name"));
    if (!name)
        name = own;
    return name && name[0] ? name : keras_snake_case(&m->arena, class_name);
}

/* The layer that was made of the same object, or NULL; else `made` is remembered for it. */
static keras_layer *tree_shared(ty_keras *m, const ty_doc *serialized, keras_layer *made)
{
    const ty_doc *id = ty_doc_find(serialized, "shared_object_id");
    if (!id || id->kind != TY_DOC_INT)
        return NULL;
    int at = ty_names_find(&m->shared, id->raw);
    if (at >= 0)
        return m->shared_layer[at];
    if (made) {
        if ((m->n_shared & (m->n_shared - 1)) == 0) {
            keras_layer **bigger = TY_NEW_ARRAY(&m->arena, keras_layer *, 2 * m->n_shared + 1);
            if (m->n_shared)
                memcpy(bigger, m->shared_layer, sizeof *bigger * (size_t)m->n_shared);
            m->shared_layer = bigger;
        }
        m->shared_layer[m->n_shared] = made;
        ty_names_put(&m->shared, id->raw, m->n_shared++);
    }
    return NULL;
}

static keras_layer *tree_new_layer(ty_keras *m, keras_layer *parent, const ty_doc *serialized, const char *class_name,
                                   const char *name, const char *group)
{
    keras_layer *layer = TY_NEW(&m->arena, keras_layer);
    const ty_doc *config = ty_doc_find(serialized, "config"), *trainable = ty_doc_find(config, "trainable");
    layer->class_name = class_name;
    layer->name = tree_name(m, serialized, class_name, name);
    layer->parent = parent;
    layer->path = tree_path(m, &m->arena, parent, layer->name);
    layer->origin = ty_arena_printf(&m->arena, "%s (%s)", tree_origin(m, &m->arena, parent, layer->name), class_name);
    layer->group = group;
    layer->config = config;
    layer->data = serialized;
    layer->trainable =
        (!parent || parent->trainable) && !(trainable && trainable->kind == TY_DOC_BOOL && !trainable->boolean);
    return layer;
}

keras_layer *keras_make_layer(ty_keras *m, keras_layer *parent, const ty_doc *serialized, const char *name,
                              const char *group)
{
    const char *class_name = keras_string(ty_doc_find(serialized, "class_name"));
    keras_layer *shared = tree_shared(m, serialized, NULL);
    if (shared)
        return shared;
    keras_layer *layer = tree_new_layer(m, parent, serialized, class_name ? class_name : "?", name, group);
    tree_shared(m, serialized, layer);
    ty_error err = {0};
    if (!class_name || !layer->config || layer->config->kind != TY_DOC_MAP) {
        tree_fault(m, layer, TY_E_MODEL_FILE, NULL, "expected a layer, that is a map with class_name and config");
    } else if (++m->n_layers > KERAS_MAX_LAYERS || tree_depth(parent) > KERAS_MAX_DEPTH) {
        char text[120];
        snprintf(text, sizeof text, "more than %d layers, or layers inside layers beyond %d", KERAS_MAX_LAYERS,
                 KERAS_MAX_DEPTH);
        tree_fault(m, layer, TY_E_LIMIT, NULL, text);
    } else {
        tree_classify(m, layer, keras_string(ty_doc_find(serialized, "module")),
                      keras_string(ty_doc_find(serialized, "registered_name")));
        if (layer->what == KERAS_IS_NET && keras_read_net(m, layer, &err) < 0) {
            ty_error_at(&err, "%s: layer \"%.120s\" (%.60s)", m->file.path, layer->path, layer->class_name);
            keras_faults_add(&m->faults, &err);
            layer->what = KERAS_IS_UNKNOWN;
        }
    }
    return layer;
}

/* ---- the layers of a model ----------------------------------------------------------------------------------------
 */

/* Configurations have the name under which a class is exported, groups of weights the one that it has in Keras. */
static const char *tree_own_class(const char *class_name)
{
    return strcmp(class_name, "GroupQueryAttention") == 0 ? "GroupedQueryAttention" : class_name;
}

/* "layers/dense_1": the class in small letters and how many of it came before, in the model's list. */
static const char *tree_group(ty_keras *m, const keras_layer *net, ty_names *counts, const char *class_name)
{
    const char *snake = keras_snake_case(&m->arena, tree_own_class(class_name));
    int n = ty_names_find(counts, snake);
    ty_names_put(counts, snake, n < 0 ? 1 : n + 1);
    const char *at = ty_arena_printf(&m->arena, "%s%slayers/%s", net->group, net->group[0] ? "/" : "", snake);
    return n > 0 ? ty_arena_printf(&m->arena, "%s_%d", at, n) : at;
}

static bool tree_is_listed(const keras_layer *net, const ty_doc *serialized)
{
    const char *class_name = keras_string(ty_doc_find(serialized, "class_name"));
    const char *module = keras_string(ty_doc_find(serialized, "module"));
    if (!class_name || (module && tree_is_operation_module(module)))
        return false;
    return !(tree_is_sequential(net) && strcmp(class_name, "InputLayer") == 0);
}

int keras_read_net(ty_keras *m, keras_layer *layer, ty_error *err)
{
    /* Before Keras 2.2.3 the configuration of a Sequential was the list itself. */
    const ty_doc *list = layer->config->kind == TY_DOC_LIST ? layer->config : ty_doc_find(layer->config, "layers");
    if (!list || list->kind != TY_DOC_LIST || list->n_items == 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected a list \"layers\" with layers in the configuration of a %s",
                            layer->class_name);
    struct keras_net *net = TY_NEW(&m->arena, struct keras_net);
    layer->net = net;
    net->is_sequential = tree_is_sequential(layer);
    net->layer = TY_NEW_ARRAY(&m->arena, keras_layer *, list->n_items + 1);
    ty_names_init(&net->names, &m->arena);
    ty_names counts;
    ty_names_init(&counts, &m->arena);
    for (uint32_t i = 0; i < list->n_items; i++) {
        const ty_doc *item = ty_doc_at(list, i);
        const char *group = "";
        if (tree_is_listed(layer, item))
            group = tree_group(m, layer, &counts, keras_string(ty_doc_find(item, "class_name")));
        keras_layer *made = keras_make_layer(m, layer, item, NULL, group);
        net->layer[net->n_layers++] = made;
        if (ty_names_find(&net->names, made->name) >= 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "two layers have the name \"%.120s\"", made->name);
        ty_names_put(&net->names, made->name, net->n_layers - 1);
    }
    return keras_read_graph(m, layer, err);
}

int keras_read_tree(ty_keras *m, ty_error *err)
{
    const ty_doc *config = m->file.config;
    const char *class_name = keras_string(ty_doc_find(config, "class_name"));
    if (!class_name || !ty_doc_find(config, "config"))
        return ty_doc_error(config, err, TY_E_MODEL_FILE, NULL,
                            "expected a model, that is a map with class_name and config");
    ty_names_init(&m->shared, &m->arena);
    m->class_name = class_name;
    keras_layer *root = tree_new_layer(m, NULL, config, class_name, NULL, "");
    m->root = root;
    tree_classify(m, root, keras_string(ty_doc_find(config, "module")),
                  keras_string(ty_doc_find(config, "registered_name")));
    if (root->what != KERAS_IS_NET && root->what != KERAS_IS_UNKNOWN) {
        tree_fault(m, root, TY_E_UNSUPPORTED, "save a Sequential or Functional model",
                   "the file holds a layer, not a model");
        root->what = KERAS_IS_UNKNOWN;
    }
    return root->what == KERAS_IS_NET ? keras_read_net(m, root, err) : 0;
}
