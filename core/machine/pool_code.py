"""LLVM code of the threads that share work (:mod:`.pool`)."""

from __future__ import annotations

import platform
import time

LOOKS, CALLER_LOOKS = 4000, 1000
"""How often a thread looks for work, and a caller for the end of the last pieces, before they sleep: for about 0.1 and 0.03 ms, as long as
it takes to wake one."""

CLOSE, IN_A_ROW, AVOIDED = 50_000, 32, 16
"""A call that is offered comes right behind another one if it begins so many nanoseconds after the other's end at most; after how many of
these in a row threads are woken for them; and for how many times as long as a call took, whose caller had to sleep, nothing is offered."""

X86 = "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
ARM = "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
PAUSES = {"x86_64": X86, "AMD64": X86, "aarch64": ARM, "arm64": ARM}
"""What lets other work on a processor go on while a thread looks, by the kind of processor: a declaration, and a call."""

SYSTEM = (
    "clock_gettime",
    "pthread_cond_broadcast",
    "pthread_cond_init",
    "pthread_cond_signal",
    "pthread_cond_wait",
    "pthread_create",
    "pthread_detach",
    "pthread_getspecific",
    "pthread_key_create",
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_setspecific",
)
"""Functions of the system that it needs."""

CODE = """
@call = global ptr null       ; what is shared, and its argument
@argument = global ptr null
@pieces = global i32 0
@helpers = global i32 0       ; threads that may take pieces, beside the caller
@open = global i64 0          ; the upper half counts calls; 16 bits are the first piece that nobody has taken, 16 the one behind the last
@running = global i32 0       ; pieces that have not ended
@started = global i32 0       ; threads
@sleepers = global i32 0      ; those that sleep
@caller_sleeps = global i32 0
@last_end = global i64 0      ; when the last call that was offered ended, in nanoseconds
@in_a_row = global i32 0      ; how many came right behind another one
@avoided_until = global i64 0
@is_forked = global i32 0     ; whether this is a process forked from the one whose threads they are

@turn = global [16 x i64] zeroinitializer    ; held by the caller whose call is shared
@mutex = global [16 x i64] zeroinitializer
@work_came = global [16 x i64] zeroinitializer
@all_ended = global [16 x i64] zeroinitializer
@key = global i64 0           ; leads each thread to the number of its piece, of how many, and its own

declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_trylock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_setspecific(i64, ptr)
{declaration}

define void @prepare() {{
  call i32 @pthread_mutex_init(ptr @turn, ptr null)
  call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  call i32 @pthread_cond_init(ptr @work_came, ptr null)
  call i32 @pthread_cond_init(ptr @all_ended, ptr null)
  call i32 @pthread_key_create(ptr @key, ptr null)
  ret void
}}

define i32 @start(i64 %number) {{
  %thread = alloca ptr
  %argument = inttoptr i64 %number to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @help, ptr %argument)
  %is_wrong = icmp ne i32 %failed, 0
  br i1 %is_wrong, label %end, label %let_go
let_go:
  %started = load ptr, ptr %thread
  call i32 @pthread_detach(ptr %started)
  br label %end
end:
  ret i32 %failed
}}

; What the calling thread's place holds; another number outside shared calls, where it has none.
define internal i32 @held(i64 %at, i32 %otherwise) {{
  %key = load i64, ptr @key
  %place = call ptr @pthread_getspecific(i64 %key)
  %is_alone = icmp eq ptr %place, null
  br i1 %is_alone, label %alone, label %shared
shared:
  %held_at = getelementptr i32, ptr %place, i64 %at
  %held = load i32, ptr %held_at
  ret i32 %held
alone:
  ret i32 %otherwise
}}

; Which piece the calling thread does, of how many, and its own number, which is 0 for the caller.
define i32 @number() {{
  %number = call i32 @held(i64 0, i32 0)
  ret i32 %number
}}

define i32 @count() {{
  %count = call i32 @held(i64 1, i32 1)
  ret i32 %count
}}

define i32 @slot() {{
  %slot = call i32 @held(i64 2, i32 0)
  ret i32 %slot
}}

define i1 @is_inside() {{
  %key = load i64, ptr @key
  %place = call ptr @pthread_getspecific(i64 %key)
  %is_inside = icmp ne ptr %place, null
  ret i1 %is_inside
}}

; Whether a thread may take one of the pieces that are open; the caller is number -1.
define internal i1 @is_wanted(i64 %open, i32 %thread) {{
  %first = call i32 @first_of(i64 %open)
  %behind = call i32 @behind(i64 %open)
  %helpers = load atomic i32, ptr @helpers monotonic, align 4
  %is_one = icmp slt i32 %thread, %helpers
  %are_some = icmp slt i32 %first, %behind
  %is_wanted = and i1 %is_one, %are_some
  ret i1 %is_wanted
}}

define internal i32 @first_of(i64 %open) {{
  %upper = lshr i64 %open, 16
  %number = trunc i64 %upper to i32
  %first = and i32 %number, 65535
  ret i32 %first
}}

define internal i32 @behind(i64 %open) {{
  %number = trunc i64 %open to i32
  %behind = and i32 %number, 65535
  ret i32 %behind
}}

; Do pieces until nobody has left any: the caller from the first one on, others from the last one back, so that each finds in its cache what
; the same call before left there.  What is said of a call was written before its pieces were opened, and stays until all have ended.
define void @work(i32 %thread, ptr %place) {{
  br label %look
look:
  %open = load atomic i64, ptr @open seq_cst, align 8
  %is_wanted = call i1 @is_wanted(i64 %open, i32 %thread)
  br i1 %is_wanted, label %take, label %end
take:
  %is_caller = icmp slt i32 %thread, 0
  %change = select i1 %is_caller, i64 65536, i64 -1
  %rest = add i64 %open, %change
  %answer = cmpxchg ptr @open, i64 %open, i64 %rest seq_cst seq_cst
  %is_taken = extractvalue {{i64, i1}} %answer, 1
  br i1 %is_taken, label %do, label %look
do:
  %pieces = load i32, ptr @pieces
  %first = call i32 @first_of(i64 %open)
  %behind = call i32 @behind(i64 %open)
  %last = sub i32 %behind, 1
  %number = select i1 %is_caller, i32 %first, i32 %last
  %count_at = getelementptr i32, ptr %place, i64 1
  store i32 %number, ptr %place
  store i32 %pieces, ptr %count_at
  %slot_at = getelementptr i32, ptr %place, i64 2
  %slot = add i32 %thread, 1
  store i32 %slot, ptr %slot_at
  %call = load ptr, ptr @call
  %argument = load ptr, ptr @argument
  call void %call(ptr %argument)
  %running = atomicrmw sub ptr @running, i32 1 seq_cst
  %is_last = icmp eq i32 %running, 1
  br i1 %is_last, label %tell, label %look
tell:
  %sleeps = load atomic i32, ptr @caller_sleeps seq_cst, align 4
  %is_asleep = icmp ne i32 %sleeps, 0
  br i1 %is_asleep, label %wake, label %look
wake:
  call i32 @pthread_mutex_lock(ptr @mutex)
  call i32 @pthread_cond_signal(ptr @all_ended)
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %look
end:
  ret void
}}

define ptr @help(ptr %argument) {{
  %place = alloca [3 x i32]
  %wide = ptrtoint ptr %argument to i64
  %thread = trunc i64 %wide to i32
  %key = load i64, ptr @key
  call i32 @pthread_setspecific(i64 %key, ptr %place)
  br label %work
work:
  call void @work(i32 %thread, ptr %place)
  br label %look
look:
  %looks = phi i32 [0, %work], [%more, %pause]
  %seen = load atomic i64, ptr @open seq_cst, align 8
  %came = call i1 @is_wanted(i64 %seen, i32 %thread)
  br i1 %came, label %work, label %pause
pause:
  {pause}
  %more = add i32 %looks, 1
  %is_long = icmp sge i32 %more, {looks}
  br i1 %is_long, label %lie_down, label %look
lie_down:
  call i32 @pthread_mutex_lock(ptr @mutex)
  atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %ask
ask:
  %asked = load atomic i64, ptr @open seq_cst, align 8
  %has_come = call i1 @is_wanted(i64 %asked, i32 %thread)
  br i1 %has_come, label %rise, label %sleep
sleep:
  call i32 @pthread_cond_wait(ptr @work_came, ptr @mutex)
  br label %ask
rise:
  atomicrmw sub ptr @sleepers, i32 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
}}

; Share a call with so many threads, unless another one is shared; tell whether the caller had to sleep.
define i1 @share(ptr %call, ptr %argument, i32 %pieces, i32 %helpers) {{
  %is_taken = call i32 @pthread_mutex_trylock(ptr @turn)
  %is_free = icmp eq i32 %is_taken, 0
  br i1 %is_free, label %share, label %alone
share:
  %has_slept = call i1 @share_now(ptr %call, ptr %argument, i32 %pieces, i32 %helpers)
  ret i1 %has_slept
alone:
  call void @do_alone(ptr %call, ptr %argument)
  ret i1 false
}}

define internal void @do_alone(ptr %call, ptr %argument) {{
  %key = load i64, ptr @key
  %place = call ptr @pthread_getspecific(i64 %key)
  call i32 @pthread_setspecific(i64 %key, ptr null)
  call void %call(ptr %argument)
  call i32 @pthread_setspecific(i64 %key, ptr %place)
  ret void
}}

define internal i64 @now() {{
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}

; Share a call that takes microseconds with threads that look for work anyway, as they do while such calls come one right behind another.
define void @offer(ptr %call, ptr %argument, i32 %pieces, i32 %helpers) {{
  %begin = call i64 @now()
  %last_end = load atomic i64, ptr @last_end monotonic, align 8
  %gap = sub i64 %begin, %last_end
  %is_close = icmp slt i64 %gap, {close}
  %before = load atomic i32, ptr @in_a_row monotonic, align 4
  %counted = add i32 %before, 1
  %in_a_row = select i1 %is_close, i32 %counted, i32 0
  store atomic i32 %in_a_row, ptr @in_a_row monotonic, align 4
  %avoided_until = load atomic i64, ptr @avoided_until monotonic, align 8
  %is_avoided = icmp slt i64 %begin, %avoided_until
  %sleepers = load atomic i32, ptr @sleepers monotonic, align 4
  %started = load i32, ptr @started
  %are_awake = icmp slt i32 %sleepers, %started
  %are_many = icmp sge i32 %in_a_row, {in_a_row}
  %is_wanted = or i1 %are_awake, %are_many
  %may_wait = xor i1 %is_avoided, true
  %is_shared = and i1 %is_wanted, %may_wait
  br i1 %is_shared, label %share, label %alone
share:
  %has_slept = call i1 @share(ptr %call, ptr %argument, i32 %pieces, i32 %helpers)
  br i1 %has_slept, label %avoid, label %end
avoid:
  %awake_again = call i64 @now()
  %taken = sub i64 %awake_again, %begin
  %avoided = mul i64 %taken, {avoided}
  %until = add i64 %awake_again, %avoided
  store atomic i64 %until, ptr @avoided_until monotonic, align 8
  br label %end
alone:
  call void @do_alone(ptr %call, ptr %argument)
  br label %end
end:
  %ended = call i64 @now()
  store atomic i64 %ended, ptr @last_end monotonic, align 8
  ret void
}}

; The same with their arguments in four words of memory, but for processes without threads.
define void @share_packed(ptr %packed) {{
  call void @unpack(ptr %packed, ptr @share)
  ret void
}}

define void @offer_packed(ptr %packed) {{
  call void @unpack(ptr %packed, ptr @offer)
  ret void
}}

define internal void @unpack(ptr %packed, ptr %way) {{
  %argument_at = getelementptr ptr, ptr %packed, i64 1
  %pieces_at = getelementptr ptr, ptr %packed, i64 2
  %helpers_at = getelementptr ptr, ptr %packed, i64 3
  %call = load ptr, ptr %packed
  %argument = load ptr, ptr %argument_at
  %is_forked = load i32, ptr @is_forked
  %are_none = icmp ne i32 %is_forked, 0
  br i1 %are_none, label %alone, label %share
alone:
  call void %call(ptr %argument)
  ret void
share:
  %pieces = load i32, ptr %pieces_at
  %helpers = load i32, ptr %helpers_at
  call void %way(ptr %call, ptr %argument, i32 %pieces, i32 %helpers)
  ret void
}}

; The same as share as soon as no other call is shared.
define void @share_in_turn(ptr %call, ptr %argument, i32 %pieces, i32 %helpers) {{
  call i32 @pthread_mutex_lock(ptr @turn)
  call i1 @share_now(ptr %call, ptr %argument, i32 %pieces, i32 %helpers)
  ret void
}}

define internal i1 @share_now(ptr %call, ptr %argument, i32 %pieces, i32 %helpers) {{
  %place = alloca [3 x i32]
  %key = load i64, ptr @key
  call i32 @pthread_setspecific(i64 %key, ptr %place)
  store ptr %call, ptr @call
  store ptr %argument, ptr @argument
  store i32 %pieces, ptr @pieces
  store atomic i32 %helpers, ptr @helpers monotonic, align 4
  store atomic i32 %pieces, ptr @running seq_cst, align 4
  %before = load atomic i64, ptr @open seq_cst, align 8
  %calls = lshr i64 %before, 32
  %one_more = add i64 %calls, 1
  %upper = shl i64 %one_more, 32
  %lower = zext i32 %pieces to i64
  %open = or i64 %upper, %lower
  store atomic i64 %open, ptr @open seq_cst, align 8
  %sleepers = load atomic i32, ptr @sleepers seq_cst, align 4
  %are_asleep = icmp ne i32 %sleepers, 0
  br i1 %are_asleep, label %wake, label %work
wake:
  call i32 @pthread_mutex_lock(ptr @mutex)
  call i32 @pthread_cond_broadcast(ptr @work_came)
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  call void @work(i32 -1, ptr %place)
  br label %look
look:
  %looks = phi i32 [0, %work], [%more, %pause]
  %running = load atomic i32, ptr @running seq_cst, align 4
  %have_ended = icmp eq i32 %running, 0
  br i1 %have_ended, label %end, label %pause
pause:
  {pause}
  %more = add i32 %looks, 1
  %is_long = icmp sge i32 %more, {caller_looks}
  br i1 %is_long, label %lie_down, label %look
lie_down:
  call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i32 1, ptr @caller_sleeps seq_cst, align 4
  br label %ask
ask:
  %still_running = load atomic i32, ptr @running seq_cst, align 4
  %have_all_ended = icmp eq i32 %still_running, 0
  br i1 %have_all_ended, label %rise, label %sleep
sleep:
  call i32 @pthread_cond_wait(ptr @all_ended, ptr @mutex)
  br label %ask
rise:
  store atomic i32 0, ptr @caller_sleeps seq_cst, align 4
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %end
end:
  %has_slept = phi i1 [false, %look], [true, %rise]
  call i32 @pthread_setspecific(i64 %key, ptr null)
  call i32 @pthread_mutex_unlock(ptr @turn)
  ret i1 %has_slept
}}
"""


def module() -> str:
    """The code, for this processor and system."""
    declaration, pause = PAUSES.get(platform.machine(), ("", ""))
    looking = {"declaration": declaration, "pause": pause, "looks": LOOKS, "caller_looks": CALLER_LOOKS}
    return CODE.format(**looking, clock=time.CLOCK_MONOTONIC, close=CLOSE, in_a_row=IN_A_ROW, avoided=AVOIDED)
