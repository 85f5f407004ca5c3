/* What newlib asks of a system: text goes to the board's console, the end of the run is the board's.
 * There are no files, and no heap: whoever allocates gets nothing. */
#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>

#include "board.h"

#define TEXT_BYTES 64

void *_sbrk(ptrdiff_t bytes);
int _write(int file, const char *text, int bytes);
int _read(int file, char *text, int bytes);
int _lseek(int file, int offset, int from);
int _close(int file);
int _fstat(int file, struct stat *status);
int _isatty(int file);
int _getpid(void);
int _kill(int process, int signal);
__attribute__((noreturn)) void _exit(int status);

void *_sbrk(ptrdiff_t bytes)
{
    (void)bytes;
    errno = ENOMEM;
    return (void *)-1;
}

int _write(int file, const char *text, int bytes)
{
    char part[TEXT_BYTES + 1];
    int at = 0;
    (void)file;
    while (at < bytes) {
        int taken = 0;
        while (taken < TEXT_BYTES && at < bytes) {
            part[taken++] = text[at++];
        }
        part[taken] = '\0';
        board_write(part);
    }
    return bytes;
}

int _read(int file, char *text, int bytes)
{
    (void)file;
    (void)text;
    (void)bytes;
    return 0;
}

int _lseek(int file, int offset, int from)
{
    (void)file;
    (void)offset;
    (void)from;
    return 0;
}

int _close(int file)
{
    (void)file;
    return -1;
}

int _fstat(int file, struct stat *status)
{
    (void)file;
    status->st_mode = S_IFCHR;
    return 0;
}

int _isatty(int file)
{
    (void)file;
    return 1;
}

int _getpid(void)
{
    return 1;
}

/* abort() sends itself a signal: a failed assertion ends the run, as a shell tells signals. */
int _kill(int process, int signal)
{
    (void)process;
    board_exit(128 + signal);
}

void _exit(int status)
{
    board_exit(status);
}
