// A Rust program over cudarc, which uses only the driver API. The slice is its device, its stream-ordered allocations
// are charged, and an allocation that does not fit is refused with the error's name.
use cudarc::driver::{result, CudaContext};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let (free, total) = result::mem_get_info()?;
    println!("{} {} {}", CudaContext::device_count()?, total, free);

    let numbers: Vec<u32> = (0..1 << 20).collect();
    let on_device = stream.clone_htod(&numbers)?;
    assert_eq!(stream.clone_dtoh(&on_device)?, numbers);
    let zeros = stream.alloc_zeros::<u8>(1 << 20)?;
    assert!(stream.clone_dtoh(&zeros)?.iter().all(|&b| b == 0));
    drop(zeros);

    let mut held = Vec::new();
    let refused = loop {
        match unsafe { stream.alloc::<u8>(64 << 20) } {
            Ok(piece) => held.push(piece),
            Err(error) => break error,
        }
    };
    println!("{} {:?}", held.len(), refused.0);
    let before = held.len();
    held.clear();
    stream.synchronize()?;
    while let Ok(piece) = unsafe { stream.alloc::<u8>(64 << 20) } {
        held.push(piece);
    }
    println!("{}", held.len() == before);
    Ok(())
}
