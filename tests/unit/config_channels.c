/* Channels: inputdataconfig.json and the files on the disk. */
#include "config_tree.h"

#include "container/config/channels.h"

#include <sys/stat.h>

static ty_channels channels_of(tree *t, const char *text)
{
    ty_channels c;
    ty_error err = {0};

    if (ty_channels_init(&c, &t->arena, tree_parse(t, text), tree_path(t, "input/data"), &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return c;
}

static void test_keys(void **state)
{
    tree *t = *state;
    ty_channels c =
        channels_of(t, "{\"val\": {}, \"train\": {\"ContentType\": \"application/x-recordio\", "
                       "\"TrainingInputMode\": \"Pipe\", \"S3DistributionType\": \"ShardedByS3Key\", "
                       "\"RecordWrapperType\": \"RecordIO\"}, \"old\": {\"TrainingInputMode\": \"FASTFILE\", "
                       "\"S3DistributionType\": \"FULLY_REPLICATED\", \"RecordWrapperType\": \"NONE\", "
                       "\"ContentType\": null, \"Unknown\": [1]}}");

    assert_int_equal(c.n_items, 3);
    assert_string_equal(c.items[0].name, "old");
    assert_int_equal(c.items[0].mode, TY_INPUT_FAST_FILE);
    assert_false(c.items[0].sharded);
    assert_false(c.items[0].record_io);
    assert_string_equal(c.items[1].name, "train");
    assert_int_equal(c.items[1].mode, TY_INPUT_PIPE);
    assert_true(c.items[1].sharded);
    assert_true(c.items[1].record_io);
    assert_string_equal(c.items[1].content_type, "application/x-recordio");
    assert_string_equal(c.items[1].path, tree_path(t, "input/data/train"));
    assert_string_equal(c.items[2].name, "val");
    assert_int_equal(c.items[2].mode, TY_INPUT_FILE);
    assert_string_equal(c.items[2].content_type, "");
    assert_string_equal(ty_input_mode_name(TY_INPUT_FAST_FILE), "FastFile");
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        ty_code code;
        const char *place, *message;
    } rows[] = {
        {"[]", TY_E_TYPE, "test.json:1:1", "expected"},
        {"{\"a\": 1}", TY_E_TYPE, "test.json:1:7", "expected"},
        {"{\"a\": {\n\"TrainingInputMode\": \"Stream\"}}", TY_E_RANGE, "test.json:2:22",
         "\"Stream\", expected File, FastFile or Pipe"},
        {"{\"a\": {\"TrainingInputMode\": 1}}", TY_E_TYPE, "test.json:1:29", "string"},
        {"{\"a\": {\"S3DistributionType\": \"Half\"}}", TY_E_RANGE, "test.json:1:30",
         "expected FullyReplicated or ShardedByS3Key"},
        {"{\"a\": {\"RecordWrapperType\": \"TFRecord\"}}", TY_E_RANGE, "test.json:1:29", "expected None or RecordIO"},
        {"{\"a\": {\"ContentType\": []}}", TY_E_TYPE, "test.json:1:23", "string"},
        {"{\"..\": {}}", TY_E_RANGE, "test.json:1:2", "no channel name"},
        {"{\"\": {}}", TY_E_RANGE, "test.json:1:2", "no channel name"},
        {"{\"a/b\": {}}", TY_E_RANGE, "test.json:1:2", "no channel name"},
        {"{\"caf\\u00e9\": {}}", TY_E_RANGE, "test.json:1:2", "no channel name"},
        {"{\"aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaa\": {}}", TY_E_RANGE, "test.json:1:2",
         "no channel name"},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_channels c;
        ty_error err = {0};
        assert_int_equal(ty_channels_init(&c, &t->arena, tree_parse(t, rows[i].text), "/d", &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_string_equal(err.place, rows[i].place);
        assert_contains(err.message, rows[i].message);
    }
}

static void test_find(void **state)
{
    tree *t = *state;
    ty_channels c = channels_of(t, "{\"train\": {}, \"test\": {}}"), none = channels_of(t, "{}");
    ty_error err = {0};

    assert_string_equal(ty_channels_find(&c, "test", NULL)->name, "test");
    assert_null(ty_channels_find(&c, "trian", &err));
    assert_int_equal(err.code, TY_E_CHANNEL);
    assert_contains(err.message, "\"trian\"");
    assert_contains(err.message, "test, train");
    assert_string_equal(err.help, "did you mean \"train\"?");
    err = (ty_error){0};
    assert_null(ty_channels_find(&none, "train", &err));
    assert_contains(err.message, "no channels");
}

static void test_list(void **state)
{
    tree *t = *state;
    ty_channels c = channels_of(t, "{\"train\": {\"TrainingInputMode\": \"File\"}}");
    ty_channel_files files;

    tree_write(t, "input/data/train/b.csv", "12345");
    tree_write(t, "input/data/train/a/z.csv", "1");
    tree_write(t, "input/data/train/a.csv", "");
    tree_write(t, "input/data/train/B.csv", "12");
    tree_write(t, "input/data/train/.hidden", "x");
    tree_write(t, "input/data/train/.dir/x.csv", "x");
    tree_write(t, "input/data/train/_SUCCESS", "");
    tree_write(t, "input/data/train/_started_12", "");
    tree_write(t, "input/data/train/_committed_12", "{}");
    tree_write(t, "input/data/train/train-manifest", "data/train\n");
    tree_write(t, "input/data/train/_data.csv", "x");
    tree_write(t, "input/data/train-manifest", "data/train\n");
    assert_int_equal(symlink("..", tree_path(t, "input/data/train/a/loop")), 0);
    assert_int_equal(symlink("b.csv", tree_path(t, "input/data/train/link.csv")), 0);
    assert_int_equal(mkfifo(tree_path(t, "input/data/train/fifo"), 0600), 0);

    static const char *const expected[] = {"B.csv", "_data.csv", "a.csv", "a/z.csv", "b.csv", "link.csv"};
    assert_int_equal(ty_channel_list(&c.items[0], &t->arena, &files, NULL), 0);
    assert_int_equal(files.n_items, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(files.items[i].name, expected[i]);
    assert_string_equal(files.items[3].path, tree_path(t, "input/data/train/a/z.csv"));
    assert_int_equal(files.items[4].n_bytes, 5);
    assert_int_equal(files.n_bytes, 2 + 1 + 0 + 1 + 5 + 5);
}

static void list_fails(tree *t, const ty_channel *channel, ty_code code, const char *message)
{
    ty_channel_files files;
    ty_error err = {0};

    assert_int_equal(ty_channel_list(channel, &t->arena, &files, &err), -1);
    assert_int_equal(err.code, code);
    assert_contains(err.message, message);
    assert_contains(err.message, channel->name);
}

static void test_list_refused(void **state)
{
    tree *t = *state;
    ty_channels c = channels_of(t, "{\"a-gone\": {}, \"b-empty\": {}, \"c-pipe\": {\"TrainingInputMode\": \"Pipe\"}, "
                                   "\"d-file\": {}, \"e-shard\": {\"S3DistributionType\": \"ShardedByS3Key\"}, "
                                   "\"f-broken\": {}}");
    ty_channel_files files;

    list_fails(t, &c.items[0], TY_E_CHANNEL, tree_path(t, "input/data/a-gone"));
    tree_write(t, "input/data/b-empty/.keep", "");
    list_fails(t, &c.items[1], TY_E_CHANNEL, "no data files");
    list_fails(t, &c.items[2], TY_E_CONFIG, "Pipe");
    tree_write(t, "input/data/d-file", "x");
    list_fails(t, &c.items[3], TY_E_CHANNEL, "expected a folder");
    tree_write(t, "input/data/e-shard/.keep", "");
    assert_int_equal(ty_channel_list(&c.items[4], &t->arena, &files, NULL), 0);
    assert_int_equal(files.n_items, 0);
    tree_write(t, "input/data/f-broken/x", "");
    assert_int_equal(symlink("nowhere", tree_path(t, "input/data/f-broken/link")), 0);
    list_fails(t, &c.items[5], TY_E_NOT_FOUND, "f-broken/link");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_keys), TREE_TEST(test_refused),      TREE_TEST(test_find),
        TREE_TEST(test_list), TREE_TEST(test_list_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
