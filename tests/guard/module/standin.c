// A stand-in for NVIDIA's kernel module in the tests of the kernel guard: the numbers and layouts of its
// ioctls, the order in which it copies parameters, and the names of the functions to which the guard attaches.
// It has no hardware; "video memory" is a bitmap. Written from the interface's facts (nvos.h, nv_escape.h,
// phys_mem_allocator.h of the open kernel modules); no code is copied.
//
// Like the driver, it copies an ioctl's outer parameters first and the nested ones later, under the lock of
// the resource manager. A program can change them in between.
#include <linux/cdev.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "pma.h"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stand-in for NVIDIA's kernel module in tests of the kernel guard");

static unsigned int devices = 2;
module_param(devices, uint, 0444);
static unsigned int memory_mib = 8192;
module_param(memory_mib, uint, 0444);

// Delay before the nested parameters are copied, which makes a race likelier.
static unsigned int copy_delay_us;
module_param(copy_delay_us, uint, 0644);

enum { major = 195, control_minor = 255, max_devices = 8 };
enum { err_invalid_argument = 0x1f, err_invalid_class = 0x22, err_not_found = 0x57 };
enum { large_page = 2 << 20, small_page = 64 << 10 };

static PMA pmas[max_devices];
static DEFINE_MUTEX(rm_lock);
static u64 controls;

int rm_ioctl(void *context, struct file *file, u32 number, void *parameters, u32 bytes);
int RmIoctl(void *context, struct file *file, u32 number, void *parameters, u32 bytes);
long nvidia_frontend_unlocked_ioctl(struct file *file, unsigned int command, unsigned long argument);
long nvidia_frontend_compat_ioctl(struct file *file, unsigned int command, unsigned long argument);

// Memory with its references: handles, duplicates and context DMAs.
struct memory {
	PMA *pma;
	u64 *pages;
	u64 count, size;
	u32 flags;
	unsigned int references;
};
struct object {
	struct list_head next;
	u32 client, handle, parent, class_number, device;
	struct memory *memory;
};
struct session {
	struct list_head objects;  // Of all clients of this file.
	unsigned int minor, attached;
};

static void drop(struct memory *memory)
{
	u64 i;

	if (--memory->references != 0)
		return;
	if (memory->flags & contiguous) {
		pmaFreePages(memory->pma, memory->pages, 1, memory->count * memory->size, 0);
	} else if (memory->size == small_page) {
		for (i = 0; i < memory->count; ++i)  // Page tables are freed singly.
			pmaFreePages(memory->pma, memory->pages + i, 1, memory->size, 0);
	} else {
		pmaFreePages(memory->pma, memory->pages, memory->count, memory->size,
			     memory->flags & pinned ? 0 : 1u << 31);
	}
	kvfree(memory->pages);
	kfree(memory);
}

static struct memory *allocate(u32 device, u64 bytes, u64 page, u32 flags)
{
	struct memory *memory = kzalloc(sizeof(*memory), GFP_KERNEL);
	PMA_ALLOCATION_OPTIONS options = { .flags = flags };

	if (bytes == 0 || bytes > 1ull << 40 || !memory)
		goto failed;
	memory->pma = &pmas[device];
	memory->size = page;
	memory->count = DIV_ROUND_UP_ULL(bytes, page);
	memory->flags = flags;
	memory->references = 1;
	memory->pages = kvcalloc(memory->count, sizeof(u64), GFP_KERNEL);
	if (!memory->pages)
		goto failed;
	if (pmaAllocatePages(memory->pma, memory->count, page, &options, memory->pages) == ok)
		return memory;
	kvfree(memory->pages);
failed:
	kfree(memory);
	return NULL;
}

static struct object *find(struct session *session, u32 client, u32 handle)
{
	struct object *object;

	list_for_each_entry(object, &session->objects, next)
		if (object->client == client && object->handle == handle)
			return object;
	return NULL;
}

static struct object *add(struct session *session, u32 client, u32 parent, u32 handle, u32 class_number)
{
	struct object *object = kzalloc(sizeof(*object), GFP_KERNEL);

	if (!object)
		return NULL;
	object->client = client;
	object->parent = parent;
	object->handle = handle;
	object->class_number = class_number;
	list_add(&object->next, &session->objects);
	return object;
}

static void remove(struct session *session, struct object *object)
{
	struct object *child;
	bool found = true;

	while (found) {
		found = false;
		list_for_each_entry(child, &session->objects, next)
			if (child != object && child->client == object->client && child->parent == object->handle) {
				remove(session, child);
				found = true;
				break;
			}
	}
	list_del(&object->next);
	if (object->memory)
		drop(object->memory);
	kfree(object);
}

static u32 make_memory(struct session *session, u32 client, u32 parent, u32 handle, u64 bytes)
{
	struct object *device = find(session, client, parent), *object;
	struct memory *memory;

	if (!device || device->class_number != 0x80)
		return err_not_found;
	// Small allocations are contiguous, as the driver's are.
	memory = bytes <= 4 * large_page ? allocate(device->device, bytes, small_page, pinned | contiguous) :
					   allocate(device->device, bytes, large_page, pinned);
	if (!memory)
		return err_no_memory;
	object = add(session, client, parent, handle, 0x40);
	if (!object) {
		drop(memory);
		return err_no_memory;
	}
	object->memory = memory;
	return ok;
}

// A channel group: memory for it and its page tables, which no request announces.
static u32 add_unannounced(struct session *session, u32 client, u32 parent, u32 handle, u32 flags)
{
	struct object *device = find(session, client, parent), *object;

	if (!device || device->class_number != 0x80)
		return err_not_found;
	object = add(session, client, parent, handle, 0xa06c);
	if (!object)
		return err_no_memory;
	object->memory = allocate(device->device, 8 << 20, flags & pinned ? small_page : large_page, flags);
	if (object->memory)
		return ok;
	remove(session, object);
	return err_no_memory;
}

struct alloc {
	u32 root, parent, object, class_number;
	u64 parameters, rights;
	u32 bytes, flags, status, pad;
};

static u32 do_alloc(struct session *session, const struct alloc *asked)
{
	struct object *parent = find(session, asked->root, asked->parent), *made;
	u8 nested[128] = {};
	u32 device;

	switch (asked->class_number) {
	case 0x0:
	case 0x41:
		return add(session, asked->object, asked->object, asked->object, 0x41) ? ok : err_no_memory;
	case 0x80:
		if (copy_from_user(nested, (void __user *)asked->parameters, 56))
			return err_invalid_argument;
		memcpy(&device, nested, 4);
		if (device >= devices || !(session->attached >> device & 1))
			return err_invalid_argument;
		made = add(session, asked->root, asked->parent, asked->object, 0x80);
		if (!made)
			return err_no_memory;
		made->device = device;
		return ok;
	case 0x40:
	{
		u64 bytes;

		if (copy_delay_us)
			usleep_range(copy_delay_us, 2 * copy_delay_us);
		if (copy_from_user(nested, (void __user *)asked->parameters, 128))
			return err_invalid_argument;
		memcpy(&bytes, nested + 64, 8);
		return make_memory(session, asked->root, asked->parent, asked->object, bytes);
	}
	case 0x2:  // A context DMA, which keeps its memory.
		if (!parent || !parent->memory)
			return err_not_found;
		made = add(session, asked->root, asked->root, asked->object, 0x2);
		if (!made)
			return err_no_memory;
		made->memory = parent->memory;
		++made->memory->references;
		return ok;
	case 0xa06c:
		return add_unannounced(session, asked->root, asked->parent, asked->object, pinned);
	case 0xfab0:  // Stands for managed memory, which can be evicted.
		return add_unannounced(session, asked->root, asked->parent, asked->object, 0);
	default:
		return err_invalid_class;
	}
}

static void do_dup(struct session *session, u32 *words)
{
	struct object *source = find(session, words[3], words[4]), *made;

	words[6] = err_not_found;
	if (!source || !source->memory || !find(session, words[0], words[1]))
		return;
	made = add(session, words[0], words[1], words[2], source->class_number);
	if (!made)
		return;
	made->memory = source->memory;
	++made->memory->references;
	words[6] = ok;
}

// Resolves an escape. `parameters` is the kernel's copy of the outer structure.
noinline __noclone int RmIoctl(void *context, struct file *file, u32 number, void *parameters, u32 bytes)
{
	struct session *session = file->private_data;
	u32 *words = parameters;
	struct object *object;
	struct alloc asked = {};

	switch (number) {
	case 0x2b:
		if (bytes == 48) {
			memcpy(&asked, parameters, 48);
		} else if (bytes == 32) {
			memcpy(&asked, parameters, 24);
		} else {
			return -EINVAL;
		}
		words[bytes == 48 ? 10 : 7] = do_alloc(session, &asked);
		return 0;
	case 0x27:
		if (bytes != 48 && bytes != 56)
			return -EINVAL;
		words[10] = words[3] == 0x40 ? make_memory(session, words[0], words[1], words[2],
							   ((u64 *)parameters)[4] + 1) :
					       err_invalid_class;
		return 0;
	case 0x4a:
		if (bytes != 184)
			return -EINVAL;
		words[5] = words[2] == 2 ? make_memory(session, words[0], words[1], words[11], ((u64 *)parameters)[11]) :
					   err_invalid_argument;
		return 0;
	case 0x29:
		if (bytes != 16)
			return -EINVAL;
		object = find(session, words[0], words[2]);
		words[3] = object ? ok : err_not_found;
		if (object)
			remove(session, object);
		return 0;
	case 0x34:
		if (bytes != 28)
			return -EINVAL;
		do_dup(session, words);
		return 0;
	case 0x2a:
		if (bytes != 32)
			return -EINVAL;
		++controls;
		words[7] = ok;
		return 0;
	default:
		return -EINVAL;
	}
}

noinline __noclone int rm_ioctl(void *context, struct file *file, u32 number, void *parameters, u32 bytes)
{
	int status;

	mutex_lock(&rm_lock);
	status = RmIoctl(context, file, number, parameters, bytes);
	mutex_unlock(&rm_lock);
	return status;
}

// Registers a file of a device with one of the control node.
static int attach(struct file *file, unsigned long argument)
{
	struct session *device = file->private_data, *control;
	struct file *other;
	int descriptor;

	if (copy_from_user(&descriptor, (void __user *)argument, 4))
		return -EFAULT;
	other = fget(descriptor);
	if (!other)
		return -EBADF;
	if (other->f_op != file->f_op || device->minor >= devices) {
		fput(other);
		return -EINVAL;
	}
	control = other->private_data;
	mutex_lock(&rm_lock);
	control->attached |= 1u << device->minor;
	mutex_unlock(&rm_lock);
	fput(other);
	return 0;
}

static long do_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	u32 number = _IOC_NR(command), bytes = _IOC_SIZE(command);
	void *parameters;
	long status;

	if (number == 201)
		return attach(file, argument);
	if (number == 211) {
		struct {
			u32 number, bytes;
			u64 parameters;
		} inner;

		if (bytes != sizeof(inner) || copy_from_user(&inner, (void __user *)argument, sizeof(inner)))
			return -EFAULT;
		number = inner.number;
		bytes = inner.bytes;
		argument = inner.parameters;
		if (bytes > 8192)
			return -EINVAL;
	}
	parameters = kzalloc(bytes + 8, GFP_KERNEL);
	if (!parameters)
		return -ENOMEM;
	if (copy_from_user(parameters, (void __user *)argument, bytes)) {
		kfree(parameters);
		return -EFAULT;
	}
	status = rm_ioctl(NULL, file, number, parameters, bytes);
	if (status == 0 && copy_to_user((void __user *)argument, parameters, bytes))
		status = -EFAULT;
	kfree(parameters);
	return status;
}

noinline __noclone long nvidia_frontend_unlocked_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	return do_ioctl(file, command, argument);
}
noinline __noclone long nvidia_frontend_compat_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	return do_ioctl(file, command, argument);
}

static int open_node(struct inode *inode, struct file *file)
{
	struct session *session;

	if (iminor(inode) != control_minor && iminor(inode) >= devices)
		return -ENODEV;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	INIT_LIST_HEAD(&session->objects);
	session->minor = iminor(inode);
	file->private_data = session;
	return 0;
}

static int release_node(struct inode *inode, struct file *file)
{
	struct session *session = file->private_data;

	mutex_lock(&rm_lock);
	while (!list_empty(&session->objects))
		remove(session, list_first_entry(&session->objects, struct object, next));
	mutex_unlock(&rm_lock);
	kfree(session);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = open_node,
	.release = release_node,
	.unlocked_ioctl = nvidia_frontend_unlocked_ioctl,
	.compat_ioctl = nvidia_frontend_compat_ioctl,
};

// One line a device: its number, the pinned and the unpinned bytes. Then the number of controls.
static int show(struct seq_file *out, void *unused)
{
	unsigned int i;

	for (i = 0; i < devices; ++i)
		seq_printf(out, "device %u %llu %llu\n", i, pmas[i].pinned_bytes, pmas[i].unpinned_bytes);
	seq_printf(out, "controls %llu\n", controls);
	return 0;
}

static int __init begin(void)
{
	unsigned int i;

	if (devices > max_devices)
		return -EINVAL;
	for (i = 0; i < devices; ++i) {
		if (pma_begin(&pmas[i], memory_mib))
			return -ENOMEM;
	}
	proc_create_single("carve_standin", 0444, NULL, show);
	return register_chrdev(major, "nvidia-frontend", &operations);
}
static void __exit end(void)
{
	unsigned int i;

	unregister_chrdev(major, "nvidia-frontend");
	remove_proc_entry("carve_standin", NULL);
	for (i = 0; i < devices; ++i)
		pma_end(&pmas[i]);
}
module_init(begin);
module_exit(end);
