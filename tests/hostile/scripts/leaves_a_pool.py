# status: completed
import multiprocessing
import time

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    pool = context.Pool(3)
    pool.map_async(time.sleep, [600] * 3)
