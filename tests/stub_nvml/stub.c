/* A libnvidia-ml.so.1 of H100s that do not exist, which fails wherever STUB_NVML says.

   STUB_NVML is a list of WORD=VALUE, separated by semicolons:
     gpus=N          how many GPUs there are (1)
     say=1           print a line to stdout and to stderr in every call
     log=PATH        append each call's name, an @ and the GPU's number to a file
     threads=N       start so many threads in nvmlInitWithFlags; forks=N, processes
     CALL=FAULT      what happens in a function; CALL@GPU=FAULT, only when asked about this GPU; *@GPU, in every call
                     about it but nvmlDeviceGetHandleByIndex_v2
   FAULT is a number (the return code), hang (interruptible by any signal), deaf (only by SIGKILL), spin (uses a CPU),
   crash, abort, exit, slow:SECONDS, garbage (writes noise), huge (a list without an end), count:N (nvmlDeviceGetCount),
   value:N (a function that returns one number). */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, GOES_ON = -1 };
enum { HUGE_LENGTH = 0x0FFFFFFF };

typedef unsigned int u32;
typedef unsigned long long u64;
typedef void *device;

static const int BUSES[] = {0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF};

static int gpu_of(device handle) { return (int)(intptr_t)handle - 1; }
static int bus_of(int gpu) { return gpu < 8 ? BUSES[gpu] : gpu; }

/* The value of a word in STUB_NVML; NULL where it is not there. The result is overwritten by the next call. */
static const char *setting(const char *word) {
  static char value[256];
  const char *at = getenv("STUB_NVML");
  size_t length = strlen(word);
  while (at && *at) {
    size_t all = strcspn(at, ";");
    if (all > length && !strncmp(at, word, length) && at[length] == '=') {
      snprintf(value, sizeof value, "%.*s", (int)(all - length - 1), at + length + 1);
      return value;
    }
    at += all + (at[all] == ';');
  }
  return NULL;
}

static u64 number(const char *word, u64 otherwise) {
  const char *text = setting(word);
  return text ? strtoull(text, NULL, 0) : otherwise;
}

static const char *fault_of(const char *call, int gpu) {
  char word[128];
  const char *found;
  if (gpu < 0) return setting(call);
  snprintf(word, sizeof word, "%s@%d", call, gpu);
  if ((found = setting(word)) || (found = setting(call))) return found;
  snprintf(word, sizeof word, "*@%d", gpu);
  return strcmp(call, "nvmlDeviceGetHandleByIndex_v2") ? setting(word) : NULL;
}

static void told(const char *call, int gpu) {
  char line[128];
  int length = snprintf(line, sizeof line, gpu < 0 ? "%s\n" : "%s@%d\n", call, gpu);
  if (setting("say")) {
    if (write(1, line, length) + write(2, line, length) < 0) return;
    printf("printed by %s", line);
    fflush(stdout);
  }
  const char *path = setting("log");
  int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
  if (file >= 0) {
    if (write(file, line, length) < 0) perror(path);
    close(file);
  }
}

static void hear_nothing(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void *for_ever(void *unused) {
  for (;;) pause();
  return unused;
}

/* What a function returns because of a fault; GOES_ON where it shall answer. `out` is where its answer belongs. */
static int entered(const char *call, int gpu, void *out, size_t size) {
  told(call, gpu);
  const char *fault = fault_of(call, gpu);
  if (!fault) return GOES_ON;
  if (!strcmp(fault, "hang")) for_ever(NULL);
  if (!strcmp(fault, "deaf")) hear_nothing(), for_ever(NULL);
  if (!strcmp(fault, "spin")) for (volatile int on = 1; on;) continue;
  if (!strcmp(fault, "crash")) *(volatile int *)0 = 0;
  if (!strcmp(fault, "abort")) abort();
  if (!strcmp(fault, "exit")) exit(3);
  if (!strncmp(fault, "slow:", 5)) usleep((useconds_t)(atof(fault + 5) * 1e6));
  if (!strcmp(fault, "garbage")) return memset(out, 0xFF, size), SUCCESS;
  if (!strncmp(fault, "count:", 6) || !strncmp(fault, "value:", 6))
    return *(u32 *)out = (u32)strtoull(fault + 6, NULL, 0), SUCCESS;
  return *fault >= '0' && *fault <= '9' ? atoi(fault) : GOES_ON;
}

#define ENTER(gpu, out, size)                            \
  do {                                                   \
    int code = entered(__func__, gpu, out, size);        \
    if (code != GOES_ON) return code;                    \
  } while (0)

int nvmlInitWithFlags(u32 flags) {
  (void)flags;
  ENTER(-1, NULL, 0);
  pthread_t thread;
  for (u64 left = number("threads", 0); left; left--) pthread_create(&thread, NULL, for_ever, NULL);
  for (u64 left = number("forks", 0); left; left--)
    if (!fork()) for_ever(NULL);
  return SUCCESS;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { ENTER(-1, NULL, 0); return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "an error"; }

int nvmlSystemGetDriverVersion(char *text, u32 size) {
  ENTER(-1, text, size);
  return snprintf(text, size, "580.159.04"), SUCCESS;
}
int nvmlSystemGetNVMLVersion(char *text, u32 size) {
  ENTER(-1, text, size);
  return snprintf(text, size, "13.580.159.04"), SUCCESS;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  ENTER(-1, version, sizeof *version);
  return *version = 13000, SUCCESS;
}
int nvmlDeviceGetCount_v2(u32 *count) {
  ENTER(-1, count, sizeof *count);
  return *count = (u32)number("gpus", 1), SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(u32 index, device *handle) {
  ENTER((int)index, handle, sizeof *handle);
  if (index >= number("gpus", 1)) return INVALID_ARGUMENT;
  return *handle = (device)(intptr_t)(index + 1), SUCCESS;
}

struct pci {
  char legacy[16];
  u32 domain, bus, device, pci_device, pci_subsystem;
  char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(device handle, struct pci *info) {
  ENTER(gpu_of(handle), info, sizeof *info);
  int bus = bus_of(gpu_of(handle));
  *info = (struct pci){.bus = (u32)bus, .pci_device = 0x233010DE, .pci_subsystem = 0x16C110DE};
  snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", bus);
  snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", bus);
  return SUCCESS;
}

static const u64 TOTAL = 85520809984, USED = 646250496;
int nvmlDeviceGetMemoryInfo(device handle, u64 *memory) { /* total, free, used */
  ENTER(gpu_of(handle), memory, 3 * sizeof *memory);
  return memory[0] = TOTAL, memory[1] = TOTAL - USED, memory[2] = USED, SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(device handle, u64 *memory) { /* version, total, reserved, free, used */
  ENTER(gpu_of(handle), memory + 1, 4 * sizeof *memory);
  return memory[1] = TOTAL, memory[2] = USED, memory[3] = TOTAL - USED, memory[4] = 0, SUCCESS;
}
int nvmlDeviceGetBAR1MemoryInfo(device handle, u64 *memory) {
  ENTER(gpu_of(handle), memory, 3 * sizeof *memory);
  return memory[0] = 1ull << 37, memory[1] = 1ull << 37, memory[2] = 0, SUCCESS;
}

#define TEXT(name, ...)                                  \
  int name(device handle, char *text, u32 size) {        \
    ENTER(gpu_of(handle), text, size);                   \
    return snprintf(text, size, __VA_ARGS__), SUCCESS;   \
  }
TEXT(nvmlDeviceGetName, "NVIDIA H100 80GB HBM3")
TEXT(nvmlDeviceGetUUID, "GPU-%08x-0000-4000-8000-000000000000", gpu_of(handle))
TEXT(nvmlDeviceGetSerial, "165302303%04d", gpu_of(handle))
TEXT(nvmlDeviceGetVbiosVersion, "96.00.89.00.01")
TEXT(nvmlDeviceGetBoardPartNumber, "692-2G520-0200-000")
int nvmlDeviceGetGspFirmwareVersion(device handle, char *text) {
  ENTER(gpu_of(handle), text, 64);
  return snprintf(text, 64, "580.159.04"), SUCCESS;
}

#define ONE(name, type, value)                           \
  int name(device handle, type *out) {                   \
    ENTER(gpu_of(handle), out, sizeof *out);             \
    return *out = (value), SUCCESS;                      \
  }
ONE(nvmlDeviceGetBrand, u32, 14)
ONE(nvmlDeviceGetVirtualizationMode, u32, 0)
ONE(nvmlDeviceGetArchitecture, u32, 9)
ONE(nvmlDeviceGetMinorNumber, u32, (u32)gpu_of(handle))
ONE(nvmlDeviceGetIndex, u32, (u32)gpu_of(handle))
ONE(nvmlDeviceGetNumGpuCores, u32, 16896)
ONE(nvmlDeviceGetMemoryBusWidth, u32, 5120)
ONE(nvmlDeviceGetCurrentClocksEventReasons, u64, 1)
ONE(nvmlDeviceGetCurrentClocksThrottleReasons, u64, 1)
ONE(nvmlDeviceGetPerformanceState, u32, 0)
ONE(nvmlDeviceGetPowerUsage, u32, 71000)
ONE(nvmlDeviceGetPowerManagementLimit, u32, 700000)
ONE(nvmlDeviceGetPowerManagementDefaultLimit, u32, 700000)
ONE(nvmlDeviceGetEnforcedPowerLimit, u32, 700000)
ONE(nvmlDeviceGetCurrPcieLinkGeneration, u32, 5)
ONE(nvmlDeviceGetMaxPcieLinkGeneration, u32, 5)
ONE(nvmlDeviceGetGpuMaxPcieLinkGeneration, u32, 5)
ONE(nvmlDeviceGetCurrPcieLinkWidth, u32, 16)
ONE(nvmlDeviceGetMaxPcieLinkWidth, u32, 16)
ONE(nvmlDeviceGetPersistenceMode, u32, 1)
ONE(nvmlDeviceGetComputeMode, u32, 0)
ONE(nvmlDeviceGetDefaultEccMode, u32, 1)
ONE(nvmlDeviceGetDisplayActive, u32, 0)
ONE(nvmlDeviceGetDisplayMode, u32, 0)

#define TWO(name, first, second)                         \
  int name(device handle, u32 *one, u32 *two) {          \
    ENTER(gpu_of(handle), one, sizeof *one);             \
    return *one = (first), *two = (second), SUCCESS;     \
  }
TWO(nvmlDeviceGetCudaComputeCapability, 9, 0)
TWO(nvmlDeviceGetEccMode, 1, 1)
TWO(nvmlDeviceGetMigMode, 0, 0)
TWO(nvmlDeviceGetGspFirmwareMode, 1, 1)
TWO(nvmlDeviceGetPowerManagementLimitConstraints, 200000, 700000)

#define OF_KIND(name, value)                             \
  int name(device handle, u32 kind, u32 *out) {          \
    ENTER(gpu_of(handle), out, sizeof *out);             \
    return (void)kind, *out = (value), SUCCESS;          \
  }
OF_KIND(nvmlDeviceGetClockInfo, kind == 2 ? 2619 : 345)
OF_KIND(nvmlDeviceGetMaxClockInfo, kind == 2 ? 2619 : 1980)
OF_KIND(nvmlDeviceGetApplicationsClock, kind == 2 ? 2619 : 1980)
OF_KIND(nvmlDeviceGetDefaultApplicationsClock, kind == 2 ? 2619 : 1980)
OF_KIND(nvmlDeviceGetTemperature, 31)
OF_KIND(nvmlDeviceGetTemperatureThreshold, 89)

#define ABSENT(name)                                     \
  int name(device handle, u32 *out) {                    \
    ENTER(gpu_of(handle), out, sizeof *out);             \
    return NOT_SUPPORTED;                                \
  }
ABSENT(nvmlDeviceGetRetiredPagesPendingStatus)
int nvmlDeviceGetNvLinkState(device handle, u32 link, u32 *out) {
  (void)link;
  ENTER(gpu_of(handle), out, sizeof *out);
  return NOT_SUPPORTED;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(device handle, u32 link, u32 *out) {
  return nvmlDeviceGetNvLinkState(handle, link, out);
}

int nvmlDeviceGetTotalEccErrors(device handle, u32 kind, u32 counter, u64 *out) {
  (void)kind, (void)counter;
  ENTER(gpu_of(handle), out, sizeof *out);
  return *out = 0, SUCCESS;
}
int nvmlDeviceGetRemappedRows(device handle, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
  ENTER(gpu_of(handle), pending, sizeof *pending);
  return *corrected = *uncorrected = *pending = *failed = 0, SUCCESS;
}
int nvmlDeviceGetCpuAffinity(device handle, u32 words, unsigned long *mask) {
  ENTER(gpu_of(handle), mask, words * sizeof *mask);
  memset(mask, 0, words * sizeof *mask);
  return mask[0] = 3, SUCCESS;
}
int nvmlDeviceGetUtilizationRates(device handle, u32 *rates) {
  ENTER(gpu_of(handle), rates, 2 * sizeof *rates);
  return rates[0] = rates[1] = 0, SUCCESS;
}

struct fabric {
  u32 version;
  unsigned char cluster[16];
  u32 status, clique, state, health;
};
int nvmlDeviceGetGpuFabricInfoV(device handle, struct fabric *info) {
  ENTER(gpu_of(handle), info, sizeof *info);
  return *info = (struct fabric){.version = info->version}, SUCCESS;
}

struct attributes {
  u32 multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
  u64 memory_mb;
};
int nvmlDeviceGetAttributes_v2(device handle, struct attributes *out) {
  ENTER(gpu_of(handle), out, sizeof *out);
  return *out = (struct attributes){.multiprocessors = 132, .memory_mb = TOTAL >> 20}, SUCCESS;
}

struct field {
  u32 id, scope;
  int64_t timestamp, latency;
  u32 type, code;
  u64 value;
};
int nvmlDeviceGetFieldValues(device handle, int count, struct field *fields) {
  ENTER(gpu_of(handle), fields, (size_t)count * sizeof *fields);
  for (int each = 0; each < count; each++) { /* 230 is the recovery action: none */
    fields[each].type = 1;
    fields[each].code = fields[each].id == 230 ? SUCCESS : NOT_SUPPORTED;
    fields[each].value = 0;
  }
  return SUCCESS;
}

/* Lists of processes: empty, unless a fault says `huge`. */
static int listed(const char *call, device handle, u32 *count, void *rows) {
  const char *fault = fault_of(call, gpu_of(handle));
  if (fault && !strcmp(fault, "huge")) {
    told(call, gpu_of(handle));
    if (rows) return SUCCESS;
    return *count = HUGE_LENGTH, TOO_SMALL;
  }
  int code = entered(call, gpu_of(handle), count, sizeof *count);
  return code != GOES_ON ? code : (*count = 0, SUCCESS);
}
#define PROCESSES(name) \
  int name(device handle, u32 *count, void *rows) { return listed(__func__, handle, count, rows); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
int nvmlDeviceGetProcessUtilization(device handle, void *rows, u32 *count, u64 since) {
  (void)rows, (void)since;
  ENTER(gpu_of(handle), count, sizeof *count);
  return *count = 0, NOT_FOUND;
}
