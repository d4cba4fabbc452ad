# berth place: what it prints and how it exits.
unset(ENV{BERTH_SIM})
set(graph ${WORK}/place_test.txt)

function(check wanted)
  execute_process(COMMAND ${BERTH} place ${ARGN} INPUT_FILE ${graph} OUTPUT_VARIABLE out
    ERROR_VARIABLE err RESULT_VARIABLE status)
  if(NOT status STREQUAL "${wanted}")
    message(FATAL_ERROR "berth place ${ARGN}: exit code ${status}, expected ${wanted}\n${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()
include(${CMAKE_CURRENT_LIST_DIR}/expect.cmake)

set(gpu /job:localhost/replica:0/task:0/device:GPU)
set(cpu /job:localhost/replica:0/task:0/device:CPU)
set(ops "berth-graph 1
op Make () -> (y)
op One (x: any) -> (y)
op OnGpu (x: any) -> (y)
kernel Make on GPU, CPU
kernel One on GPU, CPU
kernel OnGpu on GPU
")
file(WRITE ${graph} "${ops}
node a = Make() -> float32[4] on \"/CPU:1\" from a (net.cc:3)
node b = One(a:0) -> float32[4]
node c = Neg(b:0) -> float32[4] on \"/GPU:1\"
node d = Neg(c:0) -> float32[4] with c
return d:0
")

# One line per node, in the order of the graph; a file and standard input. Then a line per device.
foreach(from ${graph} -)
  check(0 ${from} --devices CPUx2,GPUx2)
  expect("${out}" "a: (Make): CPU:1\nb: (One): GPU:0\nc: (Neg): GPU:1\nd: (Neg): GPU:1\n"
    "\nCPU:1: 1 op, sends 16 " "\nGPU:0: 1 op, receives 16 " "\nGPU:1: 2 ops, receives 16 ")
  check(0 ${from} --devices CPUx2,GPUx2 --full)
  expect("${out}" "a: (Make): ${cpu}:1\nb: (One): ${gpu}:0\nc: (Neg): ${gpu}:1\nd: (Neg): "
    "${gpu}:1: 2 ops")
endforeach()
check(0 ${graph} --devices CPUx2,GPUx2 --json)
expect_json("${out}" "b" nodes 1 name)
expect_json("${out}" "One" nodes 1 op)
expect_json("${out}" "${gpu}:0" nodes 1 device)
expect_json("${out}" "default" nodes 1 rule)
expect_json("${out}" "/GPU:1" nodes 2 requested)
expect_json("${out}" "request" nodes 2 rule)
check(0 ${graph} --devices CPUx2,GPUx2 --explain c)
expect("${out}" "\"c\" is on GPU:1" "on CPU:0: possible, step ")
check(0 ${graph} --devices CPUx2,GPUx2 --explain b --json)
expect_json("${out}" "${gpu}:0" explanation device)
expect_json("${out}" "default" explanation rule)
expect_json("${out}" "${gpu}:1" explanation moves 0 device)
expect_json("${out}" "request" explanation moves 0 changes 0 kind)
check(0 ${graph} --devices CPUx2,GPUx2 --partition)
expect("${out}" "_Transfer(" "berth-graph 1\n")
check(0 ${graph} --devices CPUx2,GPUx2 --simulate)
expect("${out}" "simulated: step ")
check(0 ${graph} --devices CPUx2,GPUx2 --policy tensorflow --soft silent)

# A cluster of 4,096 devices, the last of which is asked for.
file(WRITE ${WORK}/place_test_many.txt "${ops}
node a = Make() -> float32[4] on \"/GPU:4094\"
node b = OnGpu(a:0) -> float32[4]
node c = One(b:0) -> float32[4] on \"/CPU:0\"
return c:0
")
foreach(policy default tensorflow)
  check(0 ${WORK}/place_test_many.txt --devices CPUx1,GPUx4095 --policy ${policy} --full)
  expect("${out}" "a: (Make): ${gpu}:4094\n" "c: (One): ${cpu}:0")
endforeach()
check(0 ${WORK}/place_test_many.txt --devices CPUx1,GPUx4095)
expect("${out}" "b: (OnGpu): GPU:0\n")
check(2 ${WORK}/place_test_many.txt --devices CPUx1,GPUx4096)
expect("${err}" "expected at most 4096")

# A request that cannot be obeyed.
check(1 ${graph} --devices CPUx2 --soft error)
expect("${err}" "\"/GPU:1\"" "c")
check(1 ${graph} --devices CPUx2 --soft error --json)
expect_json("${out}" "InvalidArgument" error kind)
file(WRITE ${graph} "${ops}
node a = Make() -> float32[4]
node b = OnGpu(a:0) -> float32[4] from b (net.cc:7)
")
check(1 ${graph} --devices CPUx1)
expect("${err}" "OnGpu" "net.cc:7")
check(1 ${graph} --devices CPUx1 --json)
expect_json("${out}" "Unimplemented" error kind)
check(0 ${graph} --devices GPUx1)

# A conflict, as data.
file(WRITE ${graph} "berth-graph 1
op Var () -> (v)
op Use (a: resource read, b: resource read) -> ()
kernel Var on GPU, CPU
kernel Use on GPU, CPU
node v = Var() -> resource[] on \"/GPU:0\" from v (net.cc:1)
node w = Var() -> resource[] on \"/GPU:1\" from w (net.cc:2)
node u = Use(v:0, w:0)
")
check(1 ${graph} --devices CPUx2,GPUx2 --json)
expect("${out}" "\"kind\": \"resource_edge\"" "\"node\": \"u\"" "\"file\": \"net.cc\"")

# A conflict inside the body of a function names the body's nodes, for `plan` as for `place`.
file(WRITE ${graph} "berth-graph 1
op Var () -> (v)
op Use (a: resource read, b: resource read) -> ()
op Read (a: resource read) -> (y)
kernel Var on GPU, CPU
kernel Use on GPU, CPU
kernel Read on GPU, CPU
function both () -> (resource[]) {
node v = Var() -> resource[] on \"/GPU:0\" from v (net.cc:1)
node w = Var() -> resource[] on \"/GPU:1\" from w (net.cc:2)
node u = Use(v:0, w:0) from u (net.cc:3)
return v:0
}
node c = PartitionedCall() {f = @both} -> resource[] from c (net.cc:9)
node r = Read(c:0) -> float32[4]
return r:0
")
foreach(command place plan)
  execute_process(COMMAND ${BERTH} ${command} ${graph} --devices CPUx2,GPUx2 --json
    OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE status)
  if(NOT status EQUAL 1)
    message(FATAL_ERROR "berth ${command}: exit code ${status}, expected 1\n${err}")
  endif()
  expect("${err}" "PartitionedCall \"c\" (net.cc:9): inside function \"both\": Use \"u\" (net.cc:3)"
    "available devices: GPU:0, GPU:1, CPU:0, CPU:1\;")
  expect_json("${out}" InvalidArgument error kind)
  set(at -1)
  foreach(row "v resource 1" "u resource_edge 3" "u resource_edge 3" "w resource 2")
    separate_arguments(row)
    list(GET row 0 node)
    list(GET row 1 kind)
    list(GET row 2 line)
    math(EXPR at "${at} + 1")
    expect_json("${out}" ${node} error conflict ${at} node)
    expect_json("${out}" ${kind} error conflict ${at} kind)
    expect_json("${out}" ${line} error conflict ${at} line)
    expect_json("${out}" both error conflict ${at} function)
  endforeach()
endforeach()

# Advice is right: who asked, and what may be allowed.
file(WRITE ${graph} "${ops}
node a = Make() -> float32[4]
node b = OnGpu(a:0) -> float32[4]
")
check(1 ${graph} --devices CPUx1)
expect("${err}" "(nobody asked for one)" "listed are CPU:0\;")
file(WRITE ${graph} "${ops}
node a = Make() -> float32[4]
node b = OnGpu(a:0) -> float32[4] on \"/CPU:0\"
")
check(1 ${graph} --devices CPUx1)
expect_not("${err}" "nobody asked")
check(1 ${graph} --devices CPUx1,GPUx1 --soft error)
expect("${err}" "(asked for by \"/CPU:0\")" "ask for \"/GPU:0\", or allow soft placement")
check(0 ${graph} --devices CPUx1,GPUx1)
file(WRITE ${graph} "${ops}
node a = Make() -> float32[4] on \"/job:a/GPU:7\"
")
check(1 ${graph} --devices CPUx1,GPUx1 --soft error)
expect("${err}" "expected one of GPU:0, CPU:0\; ask for one of these, or allow soft placement")
check(1 ${graph} --devices CPUx1,GPUx1)
expect("${err}" "ask for one of these")
expect_not("${err}" "soft placement")

# A malformed name is told the devices of this graph, not those of this process.
file(WRITE ${graph} "${ops}
node a = Make() -> float32[4] on \"/TPU:0\"
")
check(1 ${graph} --devices CPUx2,GPUx3)
expect("${err}" "there are GPU:0, GPU:1, GPU:2, CPU:0, CPU:1\;")
file(WRITE ${graph} "${ops}
device \"/TPU:0\"
node a = Make() -> float32[4]
")
check(2 ${graph})
expect("${err}" "line 9" "write '/device:TPU:0'" "those of device lines and of --devices")

# Kernel lines hold for what the engine handles itself, too: it runs there alone.
foreach(type CPU GPU)
  file(WRITE ${graph} "${ops}kernel Identity on ${type}
kernel _Arg on ${type}
kernel PartitionedCall on ${type}
function body (float32[4]) -> (float32[4]) {
node x = _Arg() {index = 0, dtype = float32, shape = shape[4]} -> float32[4]
node y = Neg(x:0) -> float32[4]
return y:0
}
node x = _Arg() {index = 0, dtype = float32, shape = shape[4]} -> float32[4]
node a = Make() -> float32[4] on \"/GPU:0\"
node b = Identity(a:0) -> float32[4]
node c = PartitionedCall(a:0) {f = @body} -> float32[4]
return b:0, c:0
")
  check(0 ${graph} --devices CPUx1,GPUx1)
  expect("${out}" "x: (_Arg): ${type}:0\n" "b: (Identity): ${type}:0\n"
    "c: (PartitionedCall): ${type}:0\n")
endforeach()

# Devices of the text.
file(WRITE ${graph} "${ops}
device \"/job:worker/task:1/device:GPU:0\"
device \"/job:worker/task:1/device:CPU:0\"
node a = Make() -> float32[4]
")
check(0 ${graph} --full)
expect("${out}" "a: (Make): /job:worker/replica:0/task:1/device:GPU:0")
check(0 ${graph})
expect("${out}" "a: (Make): worker:1/GPU:0")
check(0 ${graph} --devices CPUx1)
expect("${out}" "a: (Make): CPU:0")

# Short names that two devices would share are full ones.
file(WRITE ${graph} "${ops}
device \"/job:worker/replica:0/task:1/device:GPU:0\"
device \"/job:worker/replica:1/task:1/device:GPU:0\"
node a = Make() -> float32[4] on \"/replica:0\"
node b = One(a:0) -> float32[4] on \"/replica:1\"
")
check(0 ${graph})
expect("${out}" "a: (Make): /job:worker/replica:0/task:1/device:GPU:0"
  "b: (One): /job:worker/replica:1/task:1/device:GPU:0")

# Bad arguments and bad input.
check(2)
check(2 ${graph} --soft loud)
check(2 ${graph} --policy mine)
check(2 ${graph} --devices CPUxx)
check(2 ${graph} --devices ,)
check(2 ${graph} --devices CPUx60,GPUx4060)
check(2 ${graph} --explain nobody)
expect("${err}" "nobody")
check(2 ${graph} --no-such-flag)
check(2 ${WORK})
check(2 ${WORK}/no_such_file)
check(2 ${WORK}/no_such_file --json)
expect_json("${out}" "BadInput" error kind)
function(check_bad text message)
  file(WRITE ${graph} "${text}")
  check(2 ${graph} --devices CPUx1 --json)
  expect("${err}" "${message}")
  expect_json("${out}" "BadInput" error kind)
endfunction()
check_bad("" "line 1, column 1: found the end of the line, expected 'berth-graph 1'")
check_bad("berth-graph 1\nnode a = One(b:0)\n" "line 2, column 10: op 'One' is unknown")
check_bad("${ops}\nnode a = One(b:0)\n" "line 9, column 14: node 'b' is not there")
check_bad("berth-graph 1\n" "no node")
check_bad("berth-graph 1\nfunction f () -> () {\nnode n = Make()\n}\n" "line 3, column 10")
check_bad("${ops}function f () -> () {\nnode n = Make() -> int32[]\n}\n" "1 function")
check_bad("berth-graph 1\ndevice CPU\ndevice \"CPU:0\"\n" "")
file(WRITE ${graph} "${ops}node a = Make() -> float32[4]\n")
check(2 ${graph})
expect("${err}" "--devices")
file(WRITE ${graph} "${ops}device CPU\ndevice \"CPU:0\"\nnode a = Make() -> float32[4]\n")
check(2 ${graph})
expect("${err}" "twice")
set(ENV{BERTH_SIM} nonsense)
check(2 ${graph} --devices CPUx1)
expect("${err}" "BERTH_SIM")
file(REMOVE ${graph})
