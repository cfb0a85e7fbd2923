# clicks.bash - made_clicks ROWS: clicks of our own making in the form of the real ones (examples/deepfm-c/data reads both); what is
# clicked depends on two fields.
made_clicks() {
    awk -v rows="$1" 'BEGIN {
        srand(7)
        print "Id,Label"
        for (n = 0; n < rows; n++) {
            a = int(rand() * 4); b = int(rand() * 5)
            line = n "," (rand() < (a == b ? 0.8 : 0.2) ? 1 : 0)
            for (f = 0; f < 13; f++) line = line "," int(rand() * 9)
            for (f = 0; f < 26; f++) line = line "," (f == 0 ? "a" a : f == 1 ? "b" b : "c" int(rand() * 3))
            print line
        }
    }'
}
