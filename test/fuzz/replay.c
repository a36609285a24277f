/* A main for fuzz targets without a fuzzer: gives each file named on the command line,
 * and each file of each folder named, to the target once. Says what it does first, so
 * that the last line of a crash names the input. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static unsigned long replayed;

static void give_up(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(2);
}

/* A block of exactly `size` bytes, so that a sanitizer sees a read past the end. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        give_up(path);
    }
    long length = ftell(file);
    if (length < 0 || fseek(file, 0, SEEK_SET) != 0) {
        give_up(path);
    }
    *size = (size_t)length;
    uint8_t *data = malloc(*size == 0 ? 1 : *size);
    if (data == NULL || fread(data, 1, *size, file) != *size) {
        give_up(path);
    }
    fclose(file);
    return data;
}

static void replay_file(const char *path)
{
    size_t size;
    uint8_t *data = read_file(path, &size);
    printf("%s (%zu bytes)\n", path, size);
    fflush(stdout);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    replayed++;
}

static void replay_folder(DIR *folder, const char *path)
{
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char inner[4096];
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof inner) {
            errno = ENAMETOOLONG;
            give_up(path);
        }
        replay_file(inner);
    }
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize != NULL) {
        (void)LLVMFuzzerInitialize(&argc, &argv);
    }

    /* No input at all is an input too, corpus or not. */
    printf("nothing (0 bytes)\n");
    fflush(stdout);
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    replayed++;

    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            replay_file(argv[i]);
        } else {
            replay_folder(folder, argv[i]);
            closedir(folder);
        }
    }
    printf("ok - %lu inputs replayed\n", replayed);
    return 0;
}
